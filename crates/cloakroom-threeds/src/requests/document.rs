//! Reference documentation of authentication requests, generated from the field table.

use std::fmt::Write as _;

use cloakroom_emv3ds::codes::AuthenticationType;

use super::FIELDS;
use super::field::{Field, Needed};

/// The fields and authentication types, as Markdown tables.
pub fn document() -> String {
    let mut text = "| field | required | format | AReq field |\n\
                    | --- | --- | --- | --- |\n"
        .to_owned();
    for field in FIELDS {
        let rule = field.rule();
        let rule = rule.strip_prefix("must be ").unwrap_or(&rule);
        let to = match field.to {
            "" => String::new(),
            to => format!("`{to}`"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {rule} | {to} |",
            field.path,
            needed(field)
        );
    }
    text.push_str("\n| authentication_type | customer | merchant |\n| --- | --- | --- |\n");
    for one in AuthenticationType::ALL {
        let code = |code: Option<&'static str>| code.unwrap_or("not allowed");
        let (customer, merchant) = (code(one.requestor_code()), code(one.three_ri_code()));
        let _ = writeln!(text, "| `{}` | {customer} | {merchant} |", one.name());
    }
    text
}

fn needed(field: &Field) -> String {
    let is_inside = field.split_path().0.is_some();
    match (field.needed, is_inside) {
        (Needed::Always, false) => "always".to_owned(),
        (Needed::Always, true) => "if its object is given".to_owned(),
        (Needed::When(condition), _) => condition.words().to_owned(),
        (Needed::Never, _) => String::new(),
    }
}
