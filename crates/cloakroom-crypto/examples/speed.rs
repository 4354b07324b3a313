//! Measures encryption and decryption: `cargo run --release -p cloakroom-crypto --example speed`.

use std::error::Error;
use std::hint::black_box;
use std::io::{Write, stdout};
use std::time::Instant;

use cloakroom_crypto::{
    Control, Data, Fingerprinting, Key, PolicyDigest, RecordContext, fingerprint, mac, open,
    random_bytes, seal,
};

const BATCHES: u32 = 50;
const ROUNDS: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let key = Key::<Data>::generate();
    let control = Key::<Control>::generate();
    let fingerprinting = Key::<Fingerprinting>::generate();
    let context = RecordContext {
        environment: "production",
        tenant: [7; 16],
        kind: "token",
        record_id: &[9; 36],
        column: "data",
        row_version: 1,
        policy: PolicyDigest::new("card", &["/pci/high/"], Some(1)),
    };
    let plaintext = [b'4'; 300];
    let sealed = seal(&key, 1, &context, &plaintext)?;

    measure("seal 300 bytes", || seal(&key, 1, &context, &plaintext))?;
    measure("open 300 bytes", || open(&key, &context, &sealed))?;
    measure("policy digest", || {
        PolicyDigest::new("card", &["/pci/high/"], Some(1))
    })?;
    measure("mac 64 bytes", || mac(&control, "api_key", &[&[1; 64]]))?;
    measure("fingerprint 16 bytes", || {
        fingerprint(&fingerprinting, "card", b"4242424242424242")
    })?;
    measure("random 28 bytes", random_bytes::<28>)?;
    Ok(())
}

/// Prints the fastest batch, the one least disturbed by other load on the machine.
fn measure<T>(name: &str, operation: impl Fn() -> T) -> std::io::Result<()> {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(operation());
        }
        start.elapsed().as_nanos() / u128::from(ROUNDS)
    };
    let nanoseconds = (0..BATCHES).map(batch).min().unwrap_or_default();
    writeln!(stdout(), "{name:<22}{nanoseconds:>6} ns")
}
