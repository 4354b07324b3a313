//! Whether distributed forms of PostgreSQL would take the statements of the service as they are.
//!
//! What each engine accepts is written down in `docs/operate/engines.toml`, with where it is documented.
//! Every statement is read for the features that matter; one that uses something nobody has looked up
//! yet, or something that is ruled out, fails.

mod feature;
mod known;
mod table;

use anyhow::{Result, bail};

use self::known::Known;
use crate::scale::Source;
use crate::workspace;

/// The page that tells it, and where in the page.
pub(crate) const PAGE: &str = "docs/operate/scale.md";
const START: &str =
    "<!-- generated from docs/operate/engines.toml and the statements of the service -->\n";
const END: &str = "<!-- end of what is generated -->\n";

/// The page as it should be.
pub(crate) fn page() -> Result<String> {
    let known = Known::read(&workspace::root())?;
    let source = Source::ask()?;
    let statements: Vec<(&str, &str)> = source.all().collect();
    let complaints = known.complaints(&statements, &source.migrations);
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    let page = std::fs::read_to_string(workspace::root().join(PAGE))?;
    replaced(&page, &table::markdown(&known, &statements)?)
}

/// `page` with `generated` between its two marks.
fn replaced(page: &str, generated: &str) -> Result<String> {
    let parts = page
        .split_once(START)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    match parts {
        Some((before, after)) => Ok(format!("{before}{START}\n{generated}\n{END}{after}")),
        None => bail!("{PAGE} has no place for what is generated"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("above\n{START}old\n{END}below\n");

        let fresh = replaced(&page, "new\n").unwrap();

        assert_eq!(fresh, format!("above\n{START}\nnew\n\n{END}below\n"));
        assert_eq!(replaced(&fresh, "new\n").unwrap(), fresh);
        assert!(replaced("above\nbelow\n", "new\n").is_err());
    }
}
