//! A named SQL statement, and the macro that lists a room's statements once.

/// One statement of the vault. All of them are constants, so a test can prepare every one.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub name: &'static str,
    pub text: &'static str,
}

/// Declares a store's statements as constants and lists them in `STATEMENTS`.
///
/// The list is what tests walk to check each statement against the migrated schema: a statement
/// cannot be declared without being in it.
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
        pub(crate) const STATEMENTS: &[$crate::storage::Statement] = &[$($constant),+];
    };
}
pub(crate) use statements;
