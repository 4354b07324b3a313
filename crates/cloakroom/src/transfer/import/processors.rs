//! The columns of card files that processors export.

/// A processor whose CSV files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Stripe,
    Braintree,
}

/// Columns and their attributes. Names and addresses are not imported unless the operator maps them: `metadata` is not
/// encrypted. Neither are network transaction ids: one of ten looks like a card number, which `metadata` must not contain.
type ColumnTable = &'static [(&'static str, &'static str)];

const STRIPE: ColumnTable = &[
    ("card.id", "id"),
    ("card.number", "data.number"),
    ("card.exp_month", "data.expiration_month"),
    ("card.exp_year", "data.expiration_year"),
    ("id", "metadata.customer"),
    ("card.transaction_ids", "-"),
    ("card.name", "-"),
    ("card.address_line1", "-"),
    ("card.address_line2", "-"),
    ("card.address_city", "-"),
    ("card.address_state", "-"),
    ("card.address_zip", "-"),
    ("card.address_country", "-"),
    ("name", "-"),
    ("email", "-"),
    ("description", "-"),
    ("default_source", "-"),
];

const BRAINTREE: ColumnTable = &[
    ("credit_card.token", "id"),
    ("credit_card.number", "data.number"),
    ("credit_card.expiration", "data.expiration"),
    ("credit_card.expiration_date", "data.expiration"),
    ("credit_card.expiration_month", "data.expiration_month"),
    ("credit_card.expiration_year", "data.expiration_year"),
    ("id", "metadata.customer"),
    ("credit_card.cardholder_name", "-"),
    ("first_name", "-"),
    ("last_name", "-"),
    ("company", "-"),
    ("email", "-"),
    ("phone", "-"),
    ("fax", "-"),
    ("website", "-"),
];

impl Processor {
    /// The attribute of a column, whatever its case.
    pub(super) fn attribute(self, column: &str) -> Option<&'static str> {
        let table = match self {
            Self::Stripe => STRIPE,
            Self::Braintree => BRAINTREE,
        };
        let found = table
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(column));
        found.map(|(_, attribute)| *attribute)
    }
}
