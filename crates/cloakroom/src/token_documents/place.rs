//! Where in a document something stands, as problems name it: `cards[0].number`.

/// The place of a member of what stands at `place`.
pub(super) fn member(place: &str, name: &str) -> String {
    match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    }
}

/// The place of an element of what stands at `place`.
pub(super) fn element(place: &str, index: usize) -> String {
    format!("{place}[{index}]")
}
