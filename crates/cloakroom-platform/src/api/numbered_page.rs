//! Pagination by page number: request parameters and response bodies.

use serde::Serialize;
use utoipa::ToSchema;

use super::FieldError;

const SIZE_DEFAULT: usize = 20;
const PAGE_MAX: u32 = i32::MAX.cast_unsigned();

/// A requested page. A page past the end is empty, which is how clients detect the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedPage {
    /// Starts at 1.
    pub page: u32,
    pub size: usize,
}

impl NumberedPage {
    /// Validates the parameters. The default is the first page with 20 items.
    pub fn new(
        page: Option<i64>,
        size: Option<i64>,
        size_max: usize,
    ) -> Result<Self, Vec<FieldError>> {
        let page = u32::try_from(page.unwrap_or(1))
            .ok()
            .filter(|page| (1..=PAGE_MAX).contains(page))
            .ok_or_else(|| {
                let rule = format!("must be a whole number from 1 to {PAGE_MAX}");
                FieldError::new("page", rule)
            });
        match (page, page_size(size, size_max)) {
            (Ok(page), Ok(size)) => Ok(Self { page, size }),
            (page, size) => Err(page.err().into_iter().chain(size.err()).collect()),
        }
    }

    /// Number of items before the page.
    pub fn offset(self) -> i64 {
        let size = i64::try_from(self.size).unwrap_or(i64::MAX);
        i64::from(self.page - 1).saturating_mul(size)
    }

    /// Maximum number of items on the page.
    pub fn limit(self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX)
    }
}

/// Validates a page size. The default is 20.
pub fn page_size(size: Option<i64>, max: usize) -> Result<usize, FieldError> {
    let Some(size) = size else {
        return Ok(SIZE_DEFAULT);
    };
    usize::try_from(size)
        .ok()
        .filter(|size| *size <= max)
        .ok_or_else(|| {
            let rule = format!("must be a whole number from 0 to {max}");
            FieldError::new("size", rule)
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
    fn page_numbers_start_at_one() {
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
            let validated = NumberedPage::new(page, size, 100);
            let validated = validated.map(|valid| (valid.page, valid.size));
            let paths = |errors: Vec<FieldError>| {
                let paths: Vec<_> = errors.into_iter().map(|error| error.path).collect();
                paths.join(" ")
            };
            assert_eq!(
                validated.map_err(paths),
                expected.map_err(str::to_owned),
                "{page:?} {size:?}"
            );
        }
    }
}
