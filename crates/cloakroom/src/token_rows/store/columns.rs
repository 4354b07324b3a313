//! New tokens as the parameters of a statement for several: an array for each column.

use std::fmt::Write as _;

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::together::New;
use super::write::{code_columns, expiry_columns};
use crate::token_attributes::Term;

/// In the order of the parameters of `tokens::insert_many`, up to the record.
#[derive(Default)]
pub(super) struct Columns<'a> {
    tenants: Vec<i32>,
    keys: Vec<Uuid>,
    aliases: Vec<Option<&'a str>>,
    containers: Vec<i32>,
    kinds: Vec<i16>,
    expiries: Vec<Option<Timestamp>>,
    offsets: Vec<Option<i16>>,
    creators: Vec<Uuid>,
    sealed: Vec<&'a [u8]>,
    masks: Vec<Option<&'a str>>,
    metadata: Vec<Option<&'a str>>,
    fingerprints: Vec<Option<&'a [u8]>>,
    fingerprint_expressions: Vec<Option<&'a str>>,
    search_indexes: Vec<Option<&'a str>>,
    terms: Vec<String>,
    paths: Vec<&'a str>,
    code_keys: Vec<Option<&'a [u8]>>,
    sealed_codes: Vec<Option<&'a [u8]>>,
    code_seconds: Vec<Option<f64>>,
    claims: Vec<bool>,
    times: Vec<Option<Timestamp>>,
    kept: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(all: &[&'a New]) -> Self {
        let mut columns = Self::default();
        for new in all {
            columns.add(new);
        }
        // Leases end in this order, whoever's they are.
        columns.kept.sort_unstable();
        columns
    }

    fn add(&mut self, new: &'a New) {
        let values = &new.values;
        let (expires_at, offset_minutes) = expiry_columns(values.expiry);
        let (code_key, sealed_code, code_seconds) = code_columns(&values.code);
        self.tenants.push(new.tenant.number);
        self.keys.push(*values.id.key());
        self.aliases.push(values.id.alias());
        self.containers.push(values.container_number);
        self.kinds.push(values.kind as i16);
        self.expiries.push(expires_at);
        self.offsets.push(offset_minutes);
        self.creators.push(values.by);
        self.sealed.push(&values.sealed);
        self.masks.push(values.mask.as_deref());
        self.metadata.push(values.metadata.as_deref());
        self.fingerprints.push(
            values
                .fingerprint
                .as_ref()
                .map(|print| &print.as_bytes()[..]),
        );
        self.fingerprint_expressions
            .push(values.fingerprint_expression.as_deref());
        self.search_indexes.push(values.search_indexes.as_deref());
        self.terms.push(array_text(&values.terms));
        self.paths.push(values.container.as_str());
        self.code_keys.push(code_key);
        self.sealed_codes.push(sealed_code);
        self.code_seconds.push(code_seconds);
        self.claims.push(values.claims);
        self.times.push(new.at);
        self.kept.extend(new.kept.iter().map(String::as_str));
    }

    /// All parameters, with the record last.
    pub(super) fn params<'s>(&'s self, record: &'s Vec<String>) -> [&'s (dyn ToSql + Sync); 23] {
        [
            &self.tenants,
            &self.keys,
            &self.aliases,
            &self.containers,
            &self.kinds,
            &self.expiries,
            &self.offsets,
            &self.creators,
            &self.sealed,
            &self.masks,
            &self.metadata,
            &self.fingerprints,
            &self.fingerprint_expressions,
            &self.search_indexes,
            &self.terms,
            &self.paths,
            &self.code_keys,
            &self.sealed_codes,
            &self.code_seconds,
            &self.claims,
            &self.times,
            &self.kept,
            record,
        ]
    }
}

/// Terms as the text of an array, because arrays of a column that is one itself must be equally long.
fn array_text(terms: &[Term]) -> String {
    let mut text = String::with_capacity(2 + 40 * terms.len());
    for (index, term) in terms.iter().enumerate() {
        let before = if index == 0 { "{" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{before}\"\\\\x{}\"", hex::encode(term));
    }
    text.push_str(if terms.is_empty() { "{}" } else { "}" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_written_as_an_array() {
        let (one, two) = ([0xab; 16], [1; 16]);
        let cases: [(&[Term], String); 3] = [
            (&[], "{}".into()),
            (&[one], format!(r#"{{"\\x{}"}}"#, "ab".repeat(16))),
            (
                &[one, two],
                format!(r#"{{"\\x{}","\\x{}"}}"#, "ab".repeat(16), "01".repeat(16)),
            ),
        ];
        for (terms, expected) in cases {
            assert_eq!(array_text(terms), expected);
        }
    }
}
