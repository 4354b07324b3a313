//! Named SQL statements, and the macro that declares those of a module.

/// A named SQL statement. All statements are constants, so that a test can prepare each of them.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub name: &'static str,
    pub text: &'static str,
}

/// Declares a store's statements as constants and lists them in `STATEMENTS`.
///
/// Tests check every statement in the list against the migrated schema. A statement cannot be declared without being in
/// it.
#[macro_export]
macro_rules! statements {
    ($($(#[$doc:meta])* $constant:ident: $name:literal = $text:expr;)+) => {
        $(
            $(#[$doc])*
            const $constant: $crate::storage::Statement = $crate::storage::Statement {
                name: $name,
                text: concat!("-- ", $name, "\n", $text),
            };
        )+

        /// Every statement of this store.
        pub const STATEMENTS: &[$crate::storage::Statement] = &[$($constant),+];
    };
}
pub use crate::statements;
