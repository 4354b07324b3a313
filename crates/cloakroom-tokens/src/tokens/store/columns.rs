//! The columns of a token, in one place: their names, types and parameters, and how rows are encoded and decoded.

use std::fmt::Write as _;

use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::change::{CodeChange, SealedToken, WriteContext};
use crate::attributes::{Expiry, Term, TokenId};
use crate::tokens::attributes::TokenAttributes;

/// The columns of a write: name, parameter, SQL type and Rust type. Passes `$list` and them to `$then`.
///
/// The numbers of parameters are here and in `param!`, and nowhere else.
macro_rules! write_columns {
    ($list:ident, $($then:tt)+) => {
        $($then)+! {
            $list
            // Columns of `token` that never change.
            identity {
                tenant_id "$1" "integer" i32;
                token_id "$2" "uuid" Uuid;
                alias "$3" "text" Option<&'a str>;
                kind "$4" "smallint" i16;
            }
            // Columns of `token` that every write sets.
            attributes {
                container_id "$5" "integer" i32;
                path "$6" "text" &'a str;
                expires_at "$7" "timestamptz" Option<Timestamp>;
                expires_offset_minutes "$8" "smallint" Option<i16>;
                sealed "$9" "bytea" &'a [u8];
                mask "$10" "text" Option<&'a str>;
                metadata "$11" "text" Option<&'a str>;
                fingerprint "$12" "bytea" Option<&'a [u8]>;
                fingerprint_expression "$13" "text" Option<&'a str>;
                search_indexes "$14" "text" Option<&'a str>;
            }
            // Other tables, and columns that an insert and an update name differently.
            context {
                written_by "$15" "uuid" Uuid;
                written_at "$16" "timestamptz" Timestamp;
                code_key_id "$17" "bytea" Option<&'a [u8]>;
                sealed_code "$18" "bytea" Option<&'a [u8]>;
                security_code_until "$19" "timestamptz" Option<Timestamp>;
                claims "$20" "boolean" bool;
                reserves "$21" "boolean" bool;
                digest_epoch "$22" "integer" i32;
            }
        }
    };
}

/// The parameters after `write_columns!`, in the order in which statements append them.
macro_rules! param {
    // An array itself, so that a batch encodes it differently.
    (terms) => {
        "$23"
    };
    // Several tokens convert no intents.
    (batch_entries) => {
        "$24"
    };
    (batch_responses) => {
        "$25"
    };
    (batch_events) => {
        "$26"
    };
    (intents) => {
        "$24"
    };
    (insert_entries) => {
        "$25"
    };
    (insert_responses) => {
        "$26"
    };
    (insert_events) => {
        "$27"
    };
    // An update appends the state before it.
    (version_before) => {
        "$25"
    };
    (container_before) => {
        "$26"
    };
    (path_before) => {
        "$27"
    };
    (removed_terms) => {
        "$28"
    };
    (added_terms) => {
        "$29"
    };
    (released_fingerprint) => {
        "$30"
    };
    (removes_code) => {
        "$31"
    };
    (update_entries) => {
        "$32"
    };
    (update_responses) => {
        "$33"
    };
    (update_events) => {
        "$34"
    };
}

/// A list of columns for a statement, such as `columns!(attributes)`. Lists of names end with a comma.
macro_rules! columns {
    ($list:ident) => {
        $crate::tokens::store::columns::write_columns!(
            $list,
            $crate::tokens::store::columns::write_list
        )
    };
}

macro_rules! write_list {
    // The columns of `token` that never change.
    (identity
        identity { $($name:ident $param:literal $sql:literal $type:ty;)+ }
        $($rest:tt)+
    ) => {
        concat!($(stringify!($name), ", "),+)
    };
    // The columns of `token` that every write sets, except `terms`.
    (attributes
        identity { $($identity:tt)+ }
        attributes { $($name:ident $param:literal $sql:literal $type:ty;)+ }
        $($rest:tt)+
    ) => {
        concat!($(stringify!($name), ", "),+)
    };
    // The values of all columns, except `terms`. The encrypted data is null if its key was replaced.
    (values $($group:ident { $($name:ident $param:literal $sql:literal $type:ty;)+ })+) => {
        concat!($($($crate::tokens::store::columns::column_value!($name), ", ",)+)+)
    };
    // One write as a row.
    (single $($group:ident { $($name:ident $param:literal $sql:literal $type:ty;)+ })+) => {
        concat!(
            "(select ",
            $($($param, "::", $sql, " as ", stringify!($name), ", ",)+)+
            $crate::tokens::store::columns::param!(terms),
            "::bytea[] as terms) as source"
        )
    };
    // Several writes as rows.
    (batch $($group:ident { $($name:ident $param:literal $sql:literal $type:ty;)+ })+) => {
        concat!(
            "unnest(",
            $($($param, "::", $sql, "[], ",)+)+
            $crate::tokens::store::columns::param!(terms),
            "::text[]) as source (",
            $($(stringify!($name), ", ",)+)+
            "terms)"
        )
    };
}

/// A column of a write, as it is stored.
macro_rules! column_value {
    (sealed) => {
        concat!(
            cloakroom_core::fenced_digests!(
                "source.tenant_id",
                "source.sealed",
                "source.digest_epoch"
            ),
            " as sealed"
        )
    };
    ($name:ident) => {
        stringify!($name)
    };
}

/// The rows of a write, by name: `given!(single)` or `given!(batch)`.
macro_rules! given {
    ($source:ident) => {
        concat!(
            "given as materialized (
            select ",
            $crate::tokens::store::columns::columns!(values),
            "source.terms::bytea[] as terms
            from ",
            $crate::tokens::store::columns::columns!($source),
            "
        )"
        )
    };
}

pub(super) use column_value;
pub(super) use columns;
pub(super) use given;
pub(super) use param;
pub(super) use write_columns;
pub(super) use write_list;

/// Declares the parameters of one write and of several.
macro_rules! declare_write {
    (rows $($group:ident { $($name:ident $param:literal $sql:literal $type:ty;)+ })+) => {
        /// A token write as parameters.
        pub(super) struct WriteRow<'a> {
            $($($name: $type,)+)+
            terms: Vec<&'a [u8]>,
        }

        impl WriteRow<'_> {
            pub(super) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
                vec![$($(&self.$name,)+)+ &self.terms]
            }
        }

        /// Several token writes as parameters: one array per column.
        #[derive(Default)]
        pub(super) struct WriteBatch<'a> {
            $($($name: Vec<$type>,)+)+
            terms: Vec<String>,
        }

        impl<'a> WriteBatch<'a> {
            pub(super) fn push(&mut self, row: &WriteRow<'a>) {
                $($(self.$name.push(row.$name);)+)+
                self.terms.push(array_text(&row.terms));
            }

            pub(super) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
                vec![$($(&self.$name,)+)+ &self.terms]
            }
        }

        #[cfg(test)]
        const WRITE_PARAMS: &[&str] = &[$($($param,)+)+ param!(terms)];
    };
}
write_columns!(rows, declare_write);

impl<'a> WriteRow<'a> {
    pub(super) fn encode(tenant: TenantId, token: &'a SealedToken, context: WriteContext) -> Self {
        let attributes = &token.attributes;
        let (expires_at, expires_offset_minutes) = attributes
            .expiry
            .map(|expiry| (expiry.at, expiry.offset_minutes))
            .unzip();
        let code = match &token.code {
            CodeChange::Set(code) => Some(code),
            CodeChange::Keep | CodeChange::Remove => None,
        };
        Self {
            tenant_id: tenant.number,
            token_id: *token.id.key(),
            alias: token.id.alias(),
            kind: token.kind as i16,
            container_id: token.container_number,
            path: token.container.as_str(),
            expires_at,
            expires_offset_minutes,
            sealed: &token.sealed,
            mask: attributes.mask.as_deref(),
            metadata: attributes.metadata.as_deref(),
            fingerprint: token
                .fingerprint
                .as_ref()
                .map(|print| &print.as_bytes()[..]),
            fingerprint_expression: attributes.fingerprint_expression.as_deref(),
            search_indexes: attributes.search_indexes.as_deref(),
            written_by: token.by,
            written_at: token.at,
            code_key_id: code.map(|code| &code.key_id[..]),
            sealed_code: code.map(|code| &code.sealed[..]),
            security_code_until: token.security_code_until,
            claims: token.claims,
            reserves: context.reserves_ids && token.has_chosen_id,
            digest_epoch: token.digest_epoch,
            terms: as_slices(&token.terms),
        }
    }
}

pub(super) fn as_slices(terms: &[Term]) -> Vec<&[u8]> {
    terms.iter().map(|term| &term[..]).collect()
}

/// Formats terms as an array literal, because a multidimensional array must be rectangular.
pub(super) fn array_text(terms: &[&[u8]]) -> String {
    let mut text = String::with_capacity(2 + 40 * terms.len());
    for (index, term) in terms.iter().enumerate() {
        let before = if index == 0 { "{" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{before}\"\\\\x{}\"", hex::encode(term));
    }
    text.push_str(if terms.is_empty() { "{}" } else { "}" });
    text
}

/// The index of the encrypted data in `token_columns!`.
pub(super) const SEALED: usize = 0;

/// The columns of a read after `sealed`: name, Rust type and SQL expression. Passes `$sealed` and them to `$then`.
macro_rules! read_columns {
    ($sealed:tt, $($then:tt)+) => {
        $($then)+! {
            $sealed
            token_id: Uuid = "token.token_id";
            alias: Option<String> = "token.alias";
            row_version: i32 = "token.row_version";
            container_id: i32 = "token.container_id";
            path: String = "token.path";
            kind: i16 = "token.kind";
            expires_at: Option<Timestamp> = "token.expires_at";
            expires_offset_minutes: Option<i16> = "token.expires_offset_minutes";
            created_at: Timestamp = "token.created_at";
            created_by: Uuid = "token.created_by";
            modified_at: Option<Timestamp> = "token.modified_at";
            modified_by: Option<Uuid> = "token.modified_by";
            mask: Option<String> = "token.mask";
            metadata: Option<String> = "token.metadata";
            fingerprint: Option<&'a [u8]> = "token.fingerprint";
            fingerprint_expression: Option<String> = "token.fingerprint_expression";
            search_indexes: Option<String> = "token.search_indexes";
            terms: Vec<&'a [u8]> = "token.terms";
            security_code_until: Option<Timestamp> = "token.security_code_until";
            has_security_code: bool = "coalesce(token.security_code_until > now(), false)";
        }
    };
}

/// The columns that [`TokenRow`] decodes. An argument replaces the encrypted data.
macro_rules! token_columns {
    () => {
        $crate::tokens::token_columns!("token.sealed")
    };
    ($sealed:literal) => {
        $crate::tokens::read_columns!($sealed, $crate::tokens::read_list)
    };
}

macro_rules! read_list {
    ($sealed:literal $($name:ident: $type:ty = $sql:literal;)+) => {
        concat!($sealed, $(", ", $sql),+)
    };
}

pub(crate) use read_columns;
pub(crate) use read_list;
pub(crate) use token_columns;

/// Declares a row of `token_columns!`, in its order.
macro_rules! declare_read {
    ($sealed:ident $($name:ident: $type:ty = $sql:literal;)+) => {
        struct ReadRow<'a> {
            $sealed: Vec<u8>,
            $($name: $type,)+
        }

        impl<'a> ReadRow<'a> {
            fn decode(row: &'a Row) -> Self {
                let mut index = SEALED;
                let mut next = || {
                    index += 1;
                    index
                };
                Self {
                    $sealed: row.get(SEALED),
                    $($name: row.get(next()),)+
                }
            }
        }

        /// The number of `token_columns!`, and so the index of the column after them.
        pub(super) const READ_COLUMNS: usize = 1 + [$($sql),+].len();
    };
}
read_columns!(sealed, declare_read);

/// A row of the `token` table.
pub struct TokenRow {
    pub id: TokenId,
    pub row_version: u32,
    pub container: i32,
    /// The path of the container, by which lists are ordered.
    pub path: String,
    pub kind: i16,
    pub attributes: TokenAttributes,
    pub created_at: Timestamp,
    pub created_by: Uuid,
    pub modified_at: Option<Timestamp>,
    pub modified_by: Option<Uuid>,
    pub sealed: Vec<u8>,
    pub fingerprint: Option<Fingerprint>,
    pub terms: Vec<Term>,
    pub security_code_until: Option<Timestamp>,
    pub has_security_code: bool,
}

impl TokenRow {
    /// Decodes `token_columns!`, which must be the first columns of the row.
    pub fn decode(row: &Row) -> Self {
        let read = ReadRow::decode(row);
        let fingerprint = read.fingerprint.and_then(|bytes| bytes.try_into().ok());
        Self {
            id: TokenId::from_row(read.token_id, read.alias),
            row_version: read.row_version.cast_unsigned(),
            container: read.container_id,
            path: read.path,
            kind: read.kind,
            attributes: TokenAttributes {
                expiry: read.expires_at.map(|at| Expiry {
                    at,
                    offset_minutes: read.expires_offset_minutes.unwrap_or(0),
                }),
                mask: read.mask,
                metadata: read.metadata,
                fingerprint_expression: read.fingerprint_expression,
                search_indexes: read.search_indexes,
            },
            created_at: read.created_at,
            created_by: read.created_by,
            modified_at: read.modified_at,
            modified_by: read.modified_by,
            sealed: read.sealed,
            fingerprint: fingerprint.map(|bytes: [u8; 32]| Fingerprint::from(bytes)),
            terms: read
                .terms
                .into_iter()
                // A term of another length was altered, and so is its default: the data does not open.
                .map(|term| term.try_into().unwrap_or_default())
                .collect(),
            security_code_until: read.security_code_until,
            has_security_code: read.has_security_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_in_order() {
        for (index, param) in WRITE_PARAMS.iter().enumerate() {
            assert_eq!(*param, format!("${}", index + 1));
        }
    }

    #[test]
    fn terms_are_formatted_as_an_array_literal() {
        let (one, two) = ([0xab; 16], [1; 16]);
        let cases: [(&[&[u8]], String); 3] = [
            (&[], "{}".into()),
            (&[&one], format!(r#"{{"\\x{}"}}"#, "ab".repeat(16))),
            (
                &[&one, &two],
                format!(r#"{{"\\x{}","\\x{}"}}"#, "ab".repeat(16), "01".repeat(16)),
            ),
        ];
        for (terms, expected) in cases {
            assert_eq!(array_text(terms), expected);
        }
    }
}
