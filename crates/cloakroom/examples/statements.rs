//! Prints every migration and every SQL statement as JSON, for tools that try them without the service.

#![expect(clippy::print_stdout, reason = "printing is all it does")]

fn main() {
    let statements: serde_json::Map<String, serde_json::Value> = cloakroom::statements()
        .map(|statement| (statement.name.to_owned(), statement.text.into()))
        .collect();
    let migrations: Vec<&str> = cloakroom::storage::MIGRATIONS
        .iter()
        .map(|migration| migration.sql)
        .collect();
    println!(
        "{}",
        serde_json::json!({"migrations": migrations, "statements": statements})
    );
}
