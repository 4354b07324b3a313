//! Paths in a document, as error responses show them: `cards[0].number`.

/// The path of a member of the object at `path`.
pub(super) fn member(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// The path of an element of the array at `path`.
pub(super) fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
