//! Which part of a long answer is asked for.

use crate::api::Broken;

const SIZE_DEFAULT: usize = 20;
const SIZE_MAX: usize = 100;
const START_CHARS_MAX: usize = 500;
const PAGE_MAX: u32 = i32::MAX.cast_unsigned();

/// A page that starts where the one before it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub size: usize,
    /// The cursor that the page before it came with, still unchecked; the first page has none.
    pub start: Option<String>,
}

/// A page by number, of the first version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldPage {
    /// Counted from 1.
    pub page: u32,
    pub size: usize,
}

impl Page {
    /// An empty `start` is no start: clients hand back an absent cursor that way.
    pub fn new(size: Option<i64>, start: Option<String>) -> Result<Self, Vec<Broken>> {
        let size = settle_size(size);
        let start = match start.filter(|start| !start.is_empty()) {
            Some(start) if start.chars().count() > START_CHARS_MAX => Err(Broken::new(
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

impl OldPage {
    pub fn new(page: Option<i64>, size: Option<i64>) -> Result<Self, Vec<Broken>> {
        let page = u32::try_from(page.unwrap_or(1))
            .ok()
            .filter(|page| (1..=PAGE_MAX).contains(page))
            .ok_or_else(|| {
                let rule = format!("must be a whole number from 1 to {PAGE_MAX}");
                Broken::new("page", rule)
            });
        match (page, settle_size(size)) {
            (Ok(page), Ok(size)) => Ok(Self { page, size }),
            (page, size) => Err(page.err().into_iter().chain(size.err()).collect()),
        }
    }
}

fn settle_size(asked: Option<i64>) -> Result<usize, Broken> {
    let Some(asked) = asked else {
        return Ok(SIZE_DEFAULT);
    };
    usize::try_from(asked)
        .ok()
        .filter(|size| *size <= SIZE_MAX)
        .ok_or_else(|| {
            let rule = format!("must be a whole number from 0 to {SIZE_MAX}");
            Broken::new("size", rule)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(broken: Vec<Broken>) -> String {
        let paths: Vec<_> = broken.into_iter().map(|broken| broken.path).collect();
        paths.join(" ")
    }

    #[test]
    fn a_page_has_up_to_a_hundred_items_and_starts_at_a_cursor() {
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

    #[test]
    fn a_numbered_page_is_counted_from_one() {
        let cases = [
            (None, None, Ok((1, 20))),
            (Some(1), Some(0), Ok((1, 0))),
            (Some(2_147_483_647), Some(100), Ok((2_147_483_647, 100))),
            (Some(2_147_483_648), None, Err("page")),
            (Some(0), Some(101), Err("page size")),
            (Some(-1), Some(5), Err("page")),
            (Some(i64::MAX), Some(i64::MIN), Err("page size")),
        ];
        for (page, size, expected) in cases {
            let settled = OldPage::new(page, size).map(|settled| (settled.page, settled.size));
            assert_eq!(
                settled.map_err(paths),
                expected.map_err(str::to_owned),
                "{page:?} {size:?}"
            );
        }
    }
}
