//! The documentation of the table.

use std::fmt::Write as _;

use jiff::civil::Date;

use super::{ALL, Deprecation};

const OPENING: &str = "# What is deprecated, and how to move

Cloakroom keeps answering to what clients in the field still send, and helps to find those clients.

- **Clients** see it: every answer of a deprecated operation, success or failure, has the headers `Deprecation` (since
  when, [RFC 9745](https://www.rfc-editor.org/rfc/rfc9745)), `Sunset` (until when it was promised,
  [RFC 8594](https://www.rfc-editor.org/rfc/rfc8594)), and `Link` with `rel=\"successor-version\"` where another operation
  takes its place. What is gone says what to use instead, and what is refused is named.
- **Operators** see it: the metric `deprecated_calls_total` counts by `tenant` and `deprecation`, and
  `cloakroom deprecations` lists which application of which tenant used what, how often, and when last: operations,
  attributes and keys alike. Counts are written down every few seconds. A node that is killed loses those of its last
  seconds, and a write whose outcome is not known is repeated, so that a few may be counted twice. A request that is
  answered from its idempotency key is not counted again for what its body has in it.

This page is written by `cargo xtask generate` from the table that the service itself goes by.
";

/// The documentation of everything that is deprecated, as Markdown.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## At a glance\n\n| name | what | deprecated | shutdown | here | instead |\n\
         | --- | --- | --- | --- | --- | --- |\n"
    );
    for deprecated in ALL {
        let row = deprecated.row();
        let _ = writeln!(
            page,
            "| [`{name}`](#{name}) | {feature} | {since} | {until} | {treatment} | {replacement} |",
            name = row.name,
            feature = row.feature,
            since = written(row.since),
            until = written(row.until),
            treatment = row.treatment.name(),
            replacement = row.replacement,
        );
    }
    for deprecated in ALL {
        describe(&mut page, deprecated.row());
    }
    page
}

fn describe(page: &mut String, row: &Deprecation) {
    let _ = write!(
        page,
        "\n## {}\n\n{}\n\n- **Used by** {}.\n- **Here**: {}\n- **Instead**: {}.\n- **Moving**: {}\n",
        row.name, row.feature, row.used_by, row.behaviour, row.replacement, row.moving
    );
}

fn written(day: Option<Date>) -> String {
    day.map_or_else(String::new, |day| day.to_string())
}
