//! Tests of fuzzing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::*;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn corpus_is_parsed_without_panic() {
    for (name, parse) in TARGETS {
        let corpus = files(folder("corpus").join(name));
        assert!(!corpus.is_empty(), "{name}");
        for file in corpus {
            let bytes = std::fs::read(&file).unwrap();
            // Findings are small, and so are their prefixes.
            for end in 0..=bytes.len().min(1_000) {
                parse(&bytes[..end]);
            }
            parse(&bytes);
        }
    }
}

/// A short fuzz run with any compiler. `CLOAKROOM_TEST_MUTATIONS` sets the number of mutations
/// per target, and `CLOAKROOM_TEST_SEED` reproduces them.
#[test]
fn mutated_corpus_is_parsed_without_panic() {
    let seed = number("CLOAKROOM_TEST_SEED")
        .unwrap_or_else(|| u64::from_le_bytes(cloakroom_crypto::random_bytes()));
    let count = number("CLOAKROOM_TEST_MUTATIONS").unwrap_or(300);
    for (name, parse) in TARGETS {
        let corpus: Vec<Vec<u8>> = files(folder("corpus").join(name))
            .into_iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect();
        for index in 0..count {
            let mut random = Random(seed.wrapping_add(index));
            let mutated = random.mutate(&corpus);
            let outcome = std::panic::catch_unwind(|| parse(&mutated));
            let shown = String::from_utf8_lossy(&mutated);
            assert!(
                outcome.is_ok(),
                "{name}, seed {seed}, number {index}: {shown:?}"
            );
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the size of the test"
)]
fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap())
}

/// SplitMix64: small, and sufficient for this purpose.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }

    /// An entry of the corpus with up to eight changes.
    fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len() + 1);
            let end = at + self.below(bytes.len() - at + 1).min(40);
            let part = bytes[at..end].to_vec();
            let other = &corpus[self.below(corpus.len())];
            let from = self.below(other.len());
            let to = from + self.below(other.len() - from).min(40);
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..at, part.repeat(1 + self.below(20)))),
                3 => drop(bytes.splice(at..end, other[from..to].to_vec())),
                4 => {
                    let odd = b"\0\xff\r\n{}[]()|:'\"\\%-.0989999999999999999999";
                    let place = self.below(odd.len());
                    let some = odd[place..].iter().take(1 + self.below(3));
                    drop(bytes.splice(at..at, some.copied().collect::<Vec<_>>()));
                }
                _ => bytes.truncate(at.max(bytes.len() / 2)),
            }
        }
        bytes
    }
}

#[test]
fn every_parser_has_a_target_and_a_corpus() {
    let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).into()).collect();
    let named = |folder: PathBuf| -> BTreeSet<String> {
        let stem = |file: PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
        files(folder).into_iter().map(stem).collect()
    };
    assert_eq!(named(folder("targets")), listed);
    assert_eq!(named(folder("corpus")), listed);
}
