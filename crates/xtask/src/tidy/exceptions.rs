//! What is let pass for now: this list only shrinks, and an entry that is no longer needed fails.

use std::path::{Path, PathBuf};

use super::Violation;

/// One rule that one file may break, and why.
pub(super) struct Exception {
    pub(super) path: &'static str,
    pub(super) rule: &'static str,
    pub(super) reason: &'static str,
}

pub(super) const EXCEPTIONS: &[Exception] = &[Exception {
    path: "crates/cloakroom/src/config",
    rule: "room-size",
    reason: "a file per section of the configuration; people look for them by name",
}];

/// Takes out what is excepted, and adds the exceptions that nothing needed.
pub(super) fn apply(exceptions: &[Exception], found: Vec<Violation>) -> Vec<Violation> {
    let covers = |exception: &Exception, violation: &Violation| {
        violation.path == Path::new(exception.path) && violation.rule == exception.rule
    };
    let unused = exceptions
        .iter()
        .filter(|exception| !found.iter().any(|violation| covers(exception, violation)))
        .map(|exception| Violation {
            path: PathBuf::from(exception.path),
            line: 1,
            rule: "unused-exception",
            advice: format!(
                "take {} ({}) out of the list of exceptions",
                exception.rule, exception.reason
            ),
        });
    let kept = found.iter().filter(|violation| {
        !exceptions
            .iter()
            .any(|exception| covers(exception, violation))
    });
    kept.cloned().chain(unused).collect()
}
