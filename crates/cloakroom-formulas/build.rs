//! Validates the catalog files and generates Rust statics from them. An invalid file fails the build.

#[path = "src/document/mod.rs"]
mod document;
#[path = "src/vocabulary.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the build script uses only a part of the crate's types"
)]
mod vocabulary;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use document::{Document, FieldDocument};

fn main() -> ExitCode {
    // Cargo runs build scripts in the package directory.
    let folder = Path::new("../../formulas");
    println!("cargo::rerun-if-changed={}", folder.display());
    let result = read(folder).and_then(|formulas| write(&formulas));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(violations) => {
            for violation in violations {
                println!("cargo::error={violation}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Reads all formulas, sorted by id, or returns the violations of all files.
fn read(folder: &Path) -> Result<Vec<Document>, Vec<String>> {
    let unreadable = |error: std::io::Error| vec![format!("formulas: {error}")];
    let (mut formulas, mut violations) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| vec![format!("{}: {error}", path.display())])?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match document::read(&name, &text) {
            Ok(formula) => formulas.push(formula),
            Err(found) => violations.extend(found.iter().map(ToString::to_string)),
        }
    }
    formulas.sort_by(|one, other| one.id.cmp(&other.id));
    match violations.is_empty() {
        true => Ok(formulas),
        false => Err(violations),
    }
}

fn write(formulas: &[Document]) -> Result<(), Vec<String>> {
    let folder = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let folder = folder.ok_or_else(|| vec!["OUT_DIR is not set".to_owned()])?;
    let text = catalog(formulas).map_err(|error| vec![error.to_string()])?;
    std::fs::write(folder.join("catalog.rs"), text).map_err(|error| vec![error.to_string()])
}

fn catalog(formulas: &[Document]) -> Result<String, std::fmt::Error> {
    let mut text = "/// Every formula, by id.\npub static FORMULAS: &[Formula] = &[\n".to_owned();
    for formula in formulas {
        let Document {
            id,
            display_name,
            method,
            fields,
            supported_currencies: currencies,
            supported_countries: countries,
            supported_features: features,
        } = formula;
        write!(
            text,
            "Formula {{ id: {id:?}, display_name: {display_name:?}, method: Method::{method:?}, \
             supported_currencies: &{currencies:?}, supported_countries: &{countries:?}, \
             supported_features: {features:?}, fields: &["
        )?;
        for field in fields {
            let FieldDocument {
                key,
                display_name,
                required,
                format,
                secret,
            } = field;
            write!(
                text,
                "Field {{ key: {key:?}, display_name: {display_name:?}, required: {required}, \
                 format: Format::{format:?}, secret: {secret} }}, "
            )?;
        }
        text.push_str("] },\n");
    }
    text.push_str("];\n");
    Ok(text)
}
