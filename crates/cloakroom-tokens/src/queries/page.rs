//! Cursor pagination.

use cloakroom_platform::api::{FieldError, page_size};

/// The largest page size, in both versions.
pub(super) const SIZE_MAX: usize = 100;
const START_CHARS_MAX: usize = 500;

/// A page that starts after the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub size: usize,
    /// The `next` cursor of the previous page, not yet validated; `None` for the first page.
    pub start: Option<String>,
}

impl Page {
    /// Treats an empty `start` as absent, because clients send an absent cursor that way.
    pub fn new(size: Option<i64>, start: Option<String>) -> Result<Self, Vec<FieldError>> {
        let size = page_size(size, SIZE_MAX);
        let start = match start.filter(|start| !start.is_empty()) {
            Some(start) if start.chars().count() > START_CHARS_MAX => Err(FieldError::new(
                "start",
                format!("must be at most {START_CHARS_MAX} characters"),
            )),
            start => Ok(start),
        };
        match (size, start) {
            (Ok(size), Ok(start)) => Ok(Self { size, start }),
            (size, start) => Err(size.err().into_iter().chain(start.err()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(broken: Vec<FieldError>) -> String {
        let paths: Vec<_> = broken.into_iter().map(|broken| broken.path).collect();
        paths.join(" ")
    }

    #[test]
    fn page_size_and_cursor_length_are_limited() {
        let longest = "é".repeat(500);
        let too_long = format!("{longest}a");
        let cases = [
            (None, None, Ok((20, None))),
            (Some(0), Some(""), Ok((0, None))),
            (Some(100), Some(&*longest), Ok((100, Some(&*longest)))),
            (Some(101), None, Err("size")),
            (Some(-1), Some("a"), Err("size")),
            (Some(i64::MAX), None, Err("size")),
            (Some(1), Some(&*too_long), Err("start")),
            (Some(101), Some(&*too_long), Err("size start")),
        ];
        for (size, start, expected) in cases {
            let page = Page::new(size, start.map(str::to_owned));
            let expected = match expected {
                Ok((size, start)) => Ok(Page {
                    size,
                    start: start.map(str::to_owned),
                }),
                Err(broken) => Err(broken.to_owned()),
            };
            assert_eq!(page.map_err(paths), expected, "{size:?}");
        }
    }
}
