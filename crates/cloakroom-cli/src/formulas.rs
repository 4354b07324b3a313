//! `cloakroom formulas`: shows the catalog of connection formulas.

use std::io::IsTerminal as _;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use cloakroom_formulas::{Country, Currency, FORMULAS, Feature, Filter, Formula, Method, find};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use crate::output::is_json;

/// Width of lists of codes, so that they stay readable when pasted.
const WIDTH: u16 = 100;
/// Minimum similarity of an id to be suggested, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.75;
const SUGGESTIONS_MAX: usize = 3;

#[derive(Subcommand)]
pub(crate) enum FormulasCommand {
    /// List the matching formulas
    List(ListArguments),
    /// Show one formula with all attributes
    Show {
        /// Id of the formula, for example stripe-card
        id: String,
        /// Print JSON, as in the API
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct ListArguments {
    /// Id; repeatable: matches any
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Payment method; repeatable: matches any
    #[arg(long, value_name = "METHOD")]
    method: Vec<Method>,
    /// Supported currency (ISO 4217); repeatable: must support all
    #[arg(long, value_name = "CODE")]
    currency: Vec<Currency>,
    /// Supported country (ISO 3166-1 alpha-2); repeatable: must support all
    #[arg(long, value_name = "CODE")]
    country: Vec<Country>,
    /// Supported feature; repeatable: must support all
    #[arg(long, value_name = "FEATURE")]
    feature: Vec<Feature>,
    /// Print an array of formulas as JSON, as in the API
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: FormulasCommand) -> anyhow::Result<()> {
    match command {
        FormulasCommand::List(arguments) => list(arguments),
        FormulasCommand::Show { id, json } => show(&id, json),
    }
}

fn list(arguments: ListArguments) -> anyhow::Result<()> {
    let filter = Filter {
        ids: arguments.id,
        methods: arguments.method,
        currencies: arguments.currency,
        countries: arguments.country,
        features: arguments.feature,
    };
    let formulas: Vec<&Formula> = filter.formulas().collect();
    if arguments.json || is_json() {
        return print_json(&formulas);
    }
    if formulas.is_empty() {
        print_line!("no matching formulas");
        return Ok(());
    }
    print_line!("{}", formulas_table(&formulas));
    Ok(())
}

fn formulas_table(formulas: &[&Formula]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "id",
        "name",
        "currencies",
        "countries",
        "does not support",
    ]);
    // One line per formula when the output is not a terminal.
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for formula in formulas {
        table.add_row([
            formula.id,
            formula.display_name,
            &formula.supported_currencies.len().to_string(),
            &formula.supported_countries.len().to_string(),
            &features(formula, false),
        ]);
    }
    for numeric in [2, 3] {
        if let Some(column) = table.column_mut(numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The names of the features that a formula supports, or does not support.
fn features(formula: &Formula, has: bool) -> String {
    let all = Feature::ALL.iter().copied();
    let selected = all.filter(|feature| formula.supported_features.has(*feature) == has);
    let names: Vec<&str> = selected.map(Feature::name).collect();
    names.join(" ")
}

fn show(id: &str, json: bool) -> anyhow::Result<()> {
    let formula = find(id).ok_or_else(|| unknown(id))?;
    if json || is_json() {
        return print_json(formula);
    }
    print_line!("{}", attributes_table(formula));
    print_line!("\n{}", fields_table(formula));
    Ok(())
}

fn attributes_table(formula: &Formula) -> Table {
    let (currencies, countries) = (formula.supported_currencies, formula.supported_countries);
    let count = |what: &str, codes: &[&str]| format!("{} {what}", codes.len());
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .add_row(["id", formula.id])
        .add_row(["name", formula.display_name])
        .add_row(["method", formula.method.name()])
        .add_row([&count("currencies", currencies), &currencies.join(" ")])
        .add_row([&count("countries", countries), &countries.join(" ")])
        .add_row(["supports", &features(formula, true)]);
    let missing = features(formula, false);
    if !missing.is_empty() {
        table.add_row(["does not support", &missing]);
    }
    table
}

fn fields_table(formula: &Formula) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["field", "name", "", "", "format"]);
    for field in formula.fields {
        table.add_row([
            field.key,
            field.display_name,
            if field.required {
                "required"
            } else {
                "optional"
            },
            if field.secret { "secret" } else { "" },
            field.format.name(),
        ]);
    }
    table
}

/// Suggests similar ids, most similar first.
fn unknown(id: &str) -> anyhow::Error {
    let lower = id.to_lowercase();
    let similarity = |formula: &Formula| {
        let processor = formula.id.trim_end_matches("-card");
        let compare = |known: &str| strsim::jaro_winkler(&lower, known);
        compare(formula.id).max(compare(processor))
    };
    let all = FORMULAS
        .iter()
        .map(|formula| (similarity(formula), formula.id));
    let mut similar: Vec<(f64, &str)> = all.filter(|it| it.0 >= SIMILARITY_MIN).collect();
    similar.sort_by(|one, other| other.0.total_cmp(&one.0));
    let suggestions: Vec<&str> = similar
        .iter()
        .map(|it| it.1)
        .take(SUGGESTIONS_MAX)
        .collect();
    match suggestions.is_empty() {
        true => anyhow!("formula {id} not found; `cloakroom formulas list` lists all formulas"),
        false => anyhow!(
            "formula {id} not found; did you mean {}?",
            suggestions.join(" or ")
        ),
    }
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("formulas")?;
    print_line!("{text}");
    Ok(())
}
