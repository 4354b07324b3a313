//! Turns records of a CSV file into requests that create tokens.

use cloakroom_platform::card_numbers::contains_card_number;
use serde_json::{Map, Value};

use super::Processor;

/// Attributes that a column can be mapped to, besides members of `data` and `metadata`.
const ATTRIBUTES: [&str; 6] = [
    "id",
    "type",
    "data",
    "containers",
    "expires_at",
    "fingerprint_expression",
];
/// Column names that need no mapping.
const KNOWN: [(&str, &str); 6] = [
    ("number", "data.number"),
    ("expiration", EXPIRATION),
    ("expiration_month", "data.expiration_month"),
    ("expiration_year", "data.expiration_year"),
    ("cvc", "data.cvc"),
    ("container", "containers"),
];
/// Month and year in one column.
const EXPIRATION: &str = "data.expiration";
/// A column that is not imported.
const IGNORED: &str = "-";

/// What the operator says about the columns.
#[derive(Clone, Debug, Default)]
pub struct ColumnMap {
    /// Column names and the attributes that they are mapped to.
    pub columns: Vec<(String, String)>,
    /// Has the attributes of the other columns.
    pub processor: Option<Processor>,
    /// The type of records without a column for it.
    pub kind: String,
}

impl ColumnMap {
    /// The same text in every version: an import that was begun by an older one must be continued, not repeated.
    pub(super) fn digest_text(&self) -> String {
        let Self {
            columns,
            processor,
            kind,
        } = self;
        let map = format!("csv ColumnMap {{ columns: {columns:?}, kind: {kind:?} }}");
        match processor {
            Some(processor) => format!("{map} {processor:?}"),
            None => map,
        }
    }
}

/// The attribute of each column; `None` if it is not imported.
pub struct Columns {
    paths: Vec<Option<String>>,
    kind: String,
}

impl Columns {
    /// Finds the attribute of each column. Every column must have one, so that nothing is lost unnoticed.
    pub fn new<'a>(map: &ColumnMap, header: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let header: Vec<&str> = header.collect();
        // Errors quote names: they must not be those of a record.
        if header.iter().any(|name| is_data(name)) {
            return Err("the first line has no column names".to_owned());
        }
        for (index, (name, _)) in map.columns.iter().enumerate() {
            if map.columns[..index].iter().any(|(other, _)| other == name) {
                return Err(format!("the column `{name}` is mapped twice"));
            }
        }
        if let Some((name, _)) = map
            .columns
            .iter()
            .find(|(name, _)| !header.contains(&name.as_str()))
        {
            return Err(format!("it has no column `{name}`"));
        }
        let (mut paths, mut unknown) = (Vec::with_capacity(header.len()), Vec::new());
        for name in &header {
            let mapped = map.columns.iter().find(|(column, _)| column == name);
            let known = || KNOWN.iter().find(|(column, _)| column == name);
            let path = match (mapped, map.processor) {
                (Some((_, path)), _) => path.as_str(),
                (None, Some(processor)) => processor.attribute(name).unwrap_or_default(),
                (None, None) => known().map_or(*name, |(_, path)| *path),
            };
            match path == IGNORED || is_attribute(path) {
                true => paths.push((path != IGNORED).then(|| path.to_owned())),
                false if mapped.is_some() => {
                    return Err(format!("`{path}` is not an attribute of a token"));
                }
                false => unknown.push(*name),
            }
        }
        if !unknown.is_empty() {
            return Err(format!(
                "map the columns {} with --map COLUMN=ATTRIBUTE, such as --map pan=data.number, or ignore them with \
                 --map COLUMN=-",
                unknown.join(", ")
            ));
        }
        check_conflicts(&paths)?;
        Ok(Self {
            paths,
            kind: map.kind.clone(),
        })
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    /// A record as JSON. Empty cells are absent.
    pub fn to_json<'a>(&self, record: impl Iterator<Item = &'a str>) -> String {
        let mut token = Map::new();
        for (path, cell) in self.paths.iter().zip(record) {
            if let Some(path) = path.as_ref().filter(|_| !cell.is_empty()) {
                set(&mut token, path, cell);
            }
        }
        token
            .entry("type")
            .or_insert_with(|| self.kind.clone().into());
        Value::Object(token).to_string()
    }
}

/// Fails if two columns set the same attribute: one of them would be lost.
fn check_conflicts(paths: &[Option<String>]) -> Result<(), String> {
    let paths: Vec<&str> = paths.iter().flatten().map(String::as_str).collect();
    for (index, one) in paths.iter().enumerate() {
        let conflict = paths[..index].iter().find(|other| is_conflict(one, other));
        if let Some(other) = conflict {
            return Err(format!(
                "two columns are mapped to `{other}` and `{one}`; ignore one of them with --map COLUMN=-"
            ));
        }
    }
    Ok(())
}

fn is_conflict(one: &str, other: &str) -> bool {
    let contains = |outer: &str, inner: &str| {
        let rest = inner.strip_prefix(outer);
        // Names of metadata are not nested.
        rest.is_some_and(|rest| rest.starts_with('.')) && !outer.starts_with("metadata.")
    };
    let splits = |whole: &str, part: &str| {
        whole == EXPIRATION && matches!(part, "data.expiration_month" | "data.expiration_year")
    };
    one == other
        || contains(one, other)
        || contains(other, one)
        || splits(one, other)
        || splits(other, one)
}

/// Whether a cell of the first line is data rather than a name.
fn is_data(cell: &str) -> bool {
    let is_number =
        cell.chars().any(|c| c.is_ascii_digit()) && !cell.chars().any(char::is_alphabetic);
    is_number || contains_card_number(cell)
}

fn is_attribute(path: &str) -> bool {
    let is_member = |name: &str| !name.is_empty() && !name.split('.').any(str::is_empty);
    let member = path
        .strip_prefix("data.")
        .or(path.strip_prefix("metadata."));
    ATTRIBUTES.contains(&path) || member.is_some_and(is_member)
}

fn set(token: &mut Map<String, Value>, path: &str, cell: &str) {
    match path {
        "containers" => set_member(token, path, Value::from(vec![cell])),
        "data.expiration_month" => set_member(token, path, number(cell)),
        "data.expiration_year" => set_member(token, path, year(cell)),
        EXPIRATION => {
            let (month, year_text) = split_expiration(cell);
            set_member(token, "data.expiration_month", number(month));
            set_member(token, "data.expiration_year", year(year_text));
        }
        _ => set_member(token, path, cell.into()),
    }
}

/// Sets a member of an object, and creates the objects around it. Metadata is not nested: its keys may contain dots.
fn set_member(object: &mut Map<String, Value>, path: &str, value: Value) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.is_empty() {
        object.insert(first.to_owned(), value);
        return;
    }
    let inner = object.entry(first).or_insert_with(|| Map::new().into());
    if !inner.is_object() {
        *inner = Map::new().into();
    }
    if let Value::Object(inner) = inner {
        match first {
            "metadata" => drop(inner.insert(rest.to_owned(), value)),
            _ => set_member(inner, rest, value),
        }
    }
}

/// A number if it is one; otherwise the text, which validation rejects.
fn number(cell: &str) -> Value {
    cell.parse::<u64>().map_or_else(|_| cell.into(), Into::into)
}

/// A year, also of two digits.
fn year(cell: &str) -> Value {
    match (cell.len(), cell.parse::<u64>()) {
        (2, Ok(year)) => (2_000 + year).into(),
        _ => number(cell),
    }
}

/// Splits `MM/YY`, `MM/YYYY`, `MM-YY`, `MMYY`, `MMYYYY` and `YYYY-MM` into month and year.
fn split_expiration(cell: &str) -> (&str, &str) {
    match cell.split_once(['/', '-']) {
        Some((year, month)) if year.len() == 4 => (month, year),
        Some((month, year)) => (month, year),
        None => cell.split_at_checked(2).unwrap_or((cell, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(columns: &[(&str, &str)]) -> ColumnMap {
        let columns = columns.iter();
        ColumnMap {
            columns: columns
                .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
                .collect(),
            processor: None,
            kind: "card".to_owned(),
        }
    }

    #[test]
    fn records_become_requests() {
        let map = map(&[
            ("pan", "data.number"),
            ("exp", "data.expiration"),
            ("order", "metadata.order.id"),
            ("internal", "-"),
        ]);
        let columns = Columns::new(&map, ["id", "pan", "exp", "order", "internal"].into_iter());

        let json = columns
            .unwrap()
            .to_json(["a-1", "4242424242424242", "12/31", "", "x"].into_iter());

        let expected = serde_json::json!({"id": "a-1", "type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2031}});
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), expected);
    }

    #[test]
    fn columns_of_a_processor_need_no_mapping_and_may_have_another() {
        let stripe = "description,name,email,id,card.address_city,card.exp_month,card.exp_year,card.id,card.name,\
            CARD.NUMBER,default_source,card.transaction_ids";
        let record = "d,Jane Doe,jane@example.com,cus_1,Paris,8,2031,card_1,Jane Doe,4242424242424242,card_1,1234";
        let mut map = map(&[("email", "metadata.email")]);
        map.processor = Some(Processor::Stripe);
        let columns = Columns::new(&map, stripe.split(',')).unwrap();

        let json = columns.to_json(record.split(','));

        let expected = serde_json::json!({"id": "card_1", "type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 8, "expiration_year": 2031},
            "metadata": {"customer": "cus_1", "email": "jane@example.com"}});
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), expected);
        let other = Columns::new(&map, ["email", "number"].into_iter());
        let error = other.err().unwrap();
        assert!(error.starts_with("map the columns number "), "{error}");
    }

    #[test]
    fn the_text_of_a_map_does_not_change() {
        let mut map = map(&[("pan", "data.number")]);
        let text = r#"csv ColumnMap { columns: [("pan", "data.number")], kind: "card" }"#;
        assert_eq!(map.digest_text(), text);
        map.processor = Some(Processor::Stripe);
        assert_eq!(map.digest_text(), format!("{text} Stripe"));
    }

    #[test]
    fn expirations_are_split() {
        for cell in ["12/31", "12/2031", "12-31", "1231", "122031", "2031-12"] {
            let (month, text) = split_expiration(cell);
            assert_eq!(
                (number(month), year(text)),
                (12.into(), 2031.into()),
                "{cell}"
            );
        }
        assert_eq!(split_expiration("soon"), ("so", "on"));
        assert_eq!(split_expiration("1"), ("1", ""));
    }

    #[test]
    fn a_file_without_column_names_is_rejected_without_quoting_it() {
        let cells = [
            "4111111111111111",
            "4111-1111 1111.1111",
            "12/31",
            "pan 4111111111111111",
        ];
        for cell in cells {
            for columns in [&[][..], &[("pan", "data.number")]] {
                let header = ["Ada Lovelace", cell, "active"];
                let error = Columns::new(&map(columns), header.into_iter()).err();
                assert_eq!(error.as_deref(), Some("the first line has no column names"));
            }
        }
        let named = ["number", "address line 2", "expiration", "3ds", ""];
        let ignored = map(&[("address line 2", "-"), ("3ds", "-"), ("", "-")]);
        assert!(Columns::new(&ignored, named.into_iter()).is_ok());
    }

    #[test]
    fn every_column_needs_an_attribute() {
        let cases = [
            (&[][..], &["pan"][..], "map the columns pan"),
            (&[("pan", "data.number")], &["number"], "no column `pan`"),
            (
                &[("pan", "number")],
                &["pan"],
                "`number` is not an attribute",
            ),
            (&[("pan", "data.")], &["pan"], "`data.` is not an attribute"),
            (
                &[("pan", "data.number"), ("pan", "-")],
                &["pan"],
                "the column `pan` is mapped twice",
            ),
            (
                &[("pan", "data.number")],
                &["pan", "number"],
                "mapped to `data.number` and `data.number`",
            ),
            (
                &[],
                &["number", "expiration_year", "expiration"],
                "mapped to `data.expiration_year` and `data.expiration`",
            ),
            (
                &[],
                &["data", "number"],
                "mapped to `data` and `data.number`",
            ),
        ];
        for (columns, header, expected) in cases {
            let error = Columns::new(&map(columns), header.iter().copied()).err();
            assert!(error.unwrap().contains(expected), "{expected}");
        }
        let unrelated = ["metadata.a", "metadata.a.b", "id", "data.a", "data.ab"];
        assert!(Columns::new(&map(&[]), unrelated.into_iter()).is_ok());
    }
}
