//! Query parameters of the list of proxies.

use cloakroom_platform::api::{FieldError, NumberedPage, Query};
use uuid::Uuid;

use super::Filter;

const IDS_MAX: usize = 100;
const SIZE_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 200;

/// Parses the filter and page of a list. Unknown parameters are ignored.
pub(super) fn read(query: Option<&str>) -> Result<(Filter, NumberedPage), Vec<FieldError>> {
    let mut query = Query::decode(query, &["id", "name", "page", "size"]);
    let ids = query.all("id");
    if ids.len() > IDS_MAX {
        query.reject("id", format!("must be given at most {IDS_MAX} times"));
    }
    let id = |text: &str| text.parse().map_err(|_| "must be a UUID".to_owned());
    let ids: Vec<Uuid> = ids
        .iter()
        .filter_map(|text| query.check("id", id(text)))
        .collect();
    let name = query.once("name").filter(|name| !name.is_empty());
    if name
        .as_ref()
        .is_some_and(|name| name.chars().count() > NAME_CHARS_MAX || name.contains('\0'))
    {
        let rule = format!("must have at most {NAME_CHARS_MAX} characters");
        query.reject("name", rule);
    }
    let filter = Filter {
        ids: (!ids.is_empty()).then_some(ids),
        name_pattern: name.map(|name| pattern(&name)),
    };
    let page = NumberedPage::new(query.number("page"), query.number("size"), SIZE_MAX);
    query.finish(filter, page)
}

/// A pattern for names that contain a text, in which `*` stands for any text.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        match character {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', character]),
            character => pattern.push(character),
        }
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_patterns_only_where_they_have_an_asterisk() {
        let cases = [
            ("pay", "%pay%"),
            ("pay*live", "%pay%live%"),
            ("100%_a\\", "%100\\%\\_a\\\\%"),
        ];
        for (text, expected) in cases {
            assert_eq!(pattern(text), expected, "{text}");
        }
    }
}
