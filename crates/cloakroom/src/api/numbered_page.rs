//! A page by its number: which one is asked for, and how it is answered.

use serde::Serialize;
use utoipa::ToSchema;

use super::Broken;

const SIZE_DEFAULT: usize = 20;
const PAGE_MAX: u32 = i32::MAX.cast_unsigned();

/// A page by its number. One past the end is empty, which is how clients find the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedPage {
    /// Counted from 1.
    pub page: u32,
    pub size: usize,
}

impl NumberedPage {
    /// Checks what was asked for; 20 items without a size.
    pub fn new(page: Option<i64>, size: Option<i64>, size_max: usize) -> Result<Self, Vec<Broken>> {
        let page = u32::try_from(page.unwrap_or(1))
            .ok()
            .filter(|page| (1..=PAGE_MAX).contains(page))
            .ok_or_else(|| {
                let rule = format!("must be a whole number from 1 to {PAGE_MAX}");
                Broken::new("page", rule)
            });
        match (page, page_size(size, size_max)) {
            (Ok(page), Ok(size)) => Ok(Self { page, size }),
            (page, size) => Err(page.err().into_iter().chain(size.err()).collect()),
        }
    }

    /// How many items come before it.
    pub fn offset(self) -> i64 {
        let size = i64::try_from(self.size).unwrap_or(i64::MAX);
        i64::from(self.page - 1).saturating_mul(size)
    }

    /// How many items it has at most.
    pub fn limit(self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX)
    }
}

/// Checks the size of a page; 20 without one.
pub fn page_size(asked: Option<i64>, max: usize) -> Result<usize, Broken> {
    let Some(asked) = asked else {
        return Ok(SIZE_DEFAULT);
    };
    usize::try_from(asked)
        .ok()
        .filter(|size| *size <= max)
        .ok_or_else(|| {
            let rule = format!("must be a whole number from 0 to {max}");
            Broken::new("size", rule)
        })
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub struct NumberedPageBody<T> {
    pagination: NumberedPaginationBody,
    data: Vec<T>,
}

#[derive(Serialize, ToSchema)]
struct NumberedPaginationBody {
    total_items: u64,
    page_number: u32,
    page_size: usize,
    total_pages: u64,
}

impl<T> NumberedPageBody<T> {
    pub fn new(page: NumberedPage, total_items: u64, data: Vec<T>) -> Self {
        let size = page.size as u64;
        Self {
            pagination: NumberedPaginationBody {
                total_items,
                page_number: page.page,
                page_size: page.size,
                total_pages: if size == 0 {
                    0
                } else {
                    total_items.div_ceil(size)
                },
            },
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let settled = NumberedPage::new(page, size, 100);
            let settled = settled.map(|settled| (settled.page, settled.size));
            let paths = |broken: Vec<Broken>| {
                let paths: Vec<_> = broken.into_iter().map(|broken| broken.path).collect();
                paths.join(" ")
            };
            assert_eq!(
                settled.map_err(paths),
                expected.map_err(str::to_owned),
                "{page:?} {size:?}"
            );
        }
    }
}
