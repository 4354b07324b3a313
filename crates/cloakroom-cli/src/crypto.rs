//! `cloakroom crypto`: the inventory of cryptography (PCI DSS 12.3.3).

use anyhow::Context as _;
use clap::Subcommand;
use cloakroom::config::Config;
use cloakroom::crypto_inventory::{
    Inventory, PRIMITIVES, PurposeKeys, STATEMENTS, days, provider_name,
};
use cloakroom::cryptoperiods;
use cloakroom::keys::State;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use crate::output::is_json;

#[derive(Subcommand)]
pub(crate) enum CryptoCommand {
    /// List keys, algorithms, TLS, certificates and libraries; needs no root key
    Inventory {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(config: &Config, command: CryptoCommand) -> anyhow::Result<()> {
    let CryptoCommand::Inventory { json } = command;
    let inventory = Inventory::load(config).await;
    let inventory = inventory.context("cannot read the keys of the vault")?;
    if json || is_json() {
        print_line!("{:#}", inventory.to_json());
        return Ok(());
    }
    print_line!(
        "cryptography of the vault `{}` at {}",
        inventory.environment,
        inventory.at
    );
    print_keys(&inventory);
    print_algorithms();
    print_tls(&inventory);
    print_libraries(&inventory);
    Ok(())
}

fn print_keys(inventory: &Inventory) {
    let mut table = titled(
        "root keys",
        &["provider", "id", "keys that it wraps", "configured"],
    );
    for count in &inventory.roots {
        let root = count.root.as_ref();
        let provider = root.map_or("unknown", |root| provider_name(root.provider()));
        let id = root.map_or("unknown", |root| root.name());
        let keys = count.keys.to_string();
        table.add_row([provider, id, &keys, inventory.provider]);
    }
    print_line!("{table}");

    let heads = [
        "purpose",
        "active",
        "decrypt-only",
        "destroyed",
        "versions",
        "oldest active",
        "cryptoperiod",
        "used",
        "rotation",
    ];
    let mut table = titled("keys", &heads);
    for keys in &inventory.keys {
        table.add_row(key_row(keys));
    }
    print_line!("{table}");
    let heads = [
        "purpose",
        "algorithm",
        "bits",
        "quantum computers",
        "used for",
        "protected by",
    ];
    let mut table = titled("purposes of keys", &heads);
    for keys in &inventory.keys {
        let (purpose, use_of) = (keys.purpose.name(), &keys.use_of);
        let (bits, quantum) = (use_of.key_bits.to_string(), use_of.quantum.name());
        table.add_row([
            purpose,
            use_of.algorithm,
            &bits,
            quantum,
            use_of.used_for,
            use_of.protected_by,
        ]);
    }
    print_line!("{table}");
    let (keys, life) = (&inventory.client_keys, inventory.security_code_life);
    print_line!(
        "\nclient encryption keys: {} unexpired of {} tenants, X25519 (JWE ECDH-ES, A256GCM), at most one year each",
        keys.keys,
        keys.tenants
    );
    print_line!(
        "keys of security codes: in memory and Redis only, destroyed after {} minutes",
        life.as_secs() / 60
    );
    print_line!("keys that sign the audit log: Ed25519, in memory only, one per node and day");
}

fn key_row(keys: &PurposeKeys) -> Vec<String> {
    let versions = keys.counts.iter();
    let lowest = versions.clone().map(|count| count.versions.0).min();
    let highest = versions.map(|count| count.versions.1).max();
    let versions = match (lowest, highest) {
        (Some(lowest), Some(highest)) if lowest != highest => format!("{lowest}-{highest}"),
        (Some(only), _) => only.to_string(),
        (None, _) => String::new(),
    };
    let days_of = |duration| format!("{} days", days(duration));
    vec![
        keys.purpose.name().to_owned(),
        keys.count(State::Active).to_string(),
        keys.count(State::DecryptOnly).to_string(),
        keys.count(State::Destroyed).to_string(),
        versions,
        keys.age.map(|age| days_of(age.age)).unwrap_or_default(),
        keys.period.map(days_of).unwrap_or_default(),
        keys.age
            .map(|age| format!("{:.0} %", age.share() * 100.0))
            .unwrap_or_default(),
        cryptoperiods::rotation(keys.purpose).to_owned(),
    ]
}

fn print_algorithms() {
    let heads = ["algorithm", "library", "quantum computers", "used for"];
    let mut table = titled("algorithms", &heads);
    for primitive in PRIMITIVES {
        let (library, quantum) = (primitive.library, primitive.quantum.name());
        table.add_row([primitive.algorithm, library, quantum, primitive.used_for]);
    }
    print_line!("{table}");
    let mut table = titled("also", &["subject", "statement"]);
    for (subject, text) in STATEMENTS {
        table.add_row([subject, text]);
    }
    print_line!("{table}");
}

fn print_tls(inventory: &Inventory) {
    let offered = &inventory.offered;
    print_line!("\nTLS 1.3 and 1.2");
    print_line!("  cipher suites: {}", offered.cipher_suites.join(", "));
    print_line!("  key exchange: {}", offered.key_exchange.join(", "));
    let mut table = titled("connections", &["connection", "TLS", "authentication"]);
    for (connection, uses_tls) in &inventory.connections {
        let tls = if *uses_tls { "yes" } else { "no" };
        table.add_row([connection.name, tls, connection.authentication]);
    }
    print_line!("{table}");
    let heads = [
        "used by",
        "role",
        "subject",
        "public key",
        "ends",
        "days left",
    ];
    let mut table = titled("certificates", &heads);
    for used in &inventory.certificates {
        table.add_row([
            used.name.clone(),
            used.role.name().to_owned(),
            used.details.subject.clone(),
            used.details.public_key.clone(),
            used.details.not_after.to_string(),
            used.days_left(inventory.at).to_string(),
        ]);
    }
    print_line!("{table}");
    for unreadable in &inventory.unreadable {
        print_line!("  {unreadable}");
    }
}

fn print_libraries(inventory: &Inventory) {
    let mut table = titled("libraries", &["library", "version", "used for"]);
    for library in &inventory.libraries {
        table.add_row([library.name, library.version, library.role]);
    }
    print_line!("{table}");
}

/// Prints a title and returns a table with these columns.
fn titled(title: &str, heads: &[&str]) -> Table {
    print_line!("\n{title}");
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(heads.iter().copied());
    table
}
