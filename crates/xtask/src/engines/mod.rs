//! Whether distributed PostgreSQL engines accept the statements of the service unchanged.
//!
//! `docs/operate/engines.toml` lists what each engine accepts, with sources. Every statement is searched for the features
//! in which engines differ. A statement with an unlisted function or a forbidden feature is an error.

mod feature;
mod known;
mod table;

use anyhow::{Result, bail};
use cloakroom_devtools::service_sql::ServiceSql;
use cloakroom_devtools::workspace;

use self::known::Known;

/// The page, and the markers of its generated part.
pub(crate) const PAGE: &str = "docs/operate/engines.md";
const START: &str =
    "<!-- generated from docs/operate/engines.toml and the statements of the service -->\n";
const END: &str = "<!-- end of what is generated -->\n";

/// The page with its generated part updated.
pub(crate) fn page() -> Result<String> {
    let known = Known::read(&workspace::root())?;
    let sql = ServiceSql::load()?;
    let statements: Vec<(&str, &str)> = sql.statements().collect();
    let errors = known.errors(&statements, &sql.migrations);
    if !errors.is_empty() {
        bail!("{}", errors.join("\n"));
    }
    let page = std::fs::read_to_string(workspace::root().join(PAGE))?;
    replaced(&page, &table::markdown(&known, &statements)?)
}

/// `page` with `generated` between the two markers.
fn replaced(page: &str, generated: &str) -> Result<String> {
    let parts = page
        .split_once(START)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    match parts {
        Some((before, after)) => Ok(format!("{before}{START}\n{generated}\n{END}{after}")),
        None => bail!("{PAGE} has no markers for the generated part"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let page = format!("above\n{START}old\n{END}below\n");

        let fresh = replaced(&page, "new\n").unwrap();

        assert_eq!(fresh, format!("above\n{START}\nnew\n\n{END}below\n"));
        assert_eq!(replaced(&fresh, "new\n").unwrap(), fresh);
        assert!(replaced("above\nbelow\n", "new\n").is_err());
    }
}
