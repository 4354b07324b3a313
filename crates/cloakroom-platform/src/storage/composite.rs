//! Composite literals: rows as text parameters, which a statement unnests.

/// Appends a quoted field of a composite literal.
pub fn quote_field(row: &mut String, text: &str) {
    row.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            row.push(character);
        }
        row.push(character);
    }
    row.push('"');
}
