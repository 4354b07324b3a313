//! Tests of serialization and of damaged chunks.

use super::*;
use crate::bins::read::tests::{SAMPLE, table_of_csv};

fn decode(chunks: &[Vec<u8>]) -> Result<Table, Error> {
    let mut decoder = Decoder::default();
    for chunk in chunks {
        decoder.take(chunk)?;
    }
    decoder.finish()
}

#[test]
fn tables_round_trip_through_chunks() {
    let mut csv = "low,high,issuer_name\n".to_owned();
    for n in 0..60_000_u64 {
        csv.push_str(&format!("{0},{0},Bank {1}\n", 400_000_000 + n * 2, n / 3));
    }
    for text in [SAMPLE, csv.as_str()] {
        let table = table_of_csv(text);

        let chunks: Vec<_> = encode(&table).collect();

        assert!(chunks.iter().all(|chunk| chunk.len() < CHUNK_BYTES + 1024));
        assert_eq!(decode(&chunks).unwrap(), table);
    }
}

#[test]
fn damaged_chunks_are_rejected_without_panicking() {
    let table = table_of_csv(SAMPLE);
    let chunks: Vec<_> = encode(&table).collect();

    let without = |index: usize| {
        let mut chunks = chunks.clone();
        chunks.remove(index);
        chunks
    };
    // Without boundaries a table is smaller but consistent; the MACs detect that.
    for index in 0..4 {
        assert!(
            matches!(decode(&without(index)), Err(Error::Damaged)),
            "{index}"
        );
    }
    let planted: [&[u8]; 7] = [
        &[],
        &[200],
        &[HEAD, FORMAT, 0, 0, 0, 0, 0, 0, 0, 0],
        &[TEXTS, 255, 0, 0, 0, 1],
        &[ADDITIONAL, 1, 0, 0, 0, b'{'],
        &[RECORDS, 1, 2, 3],
        &[BOUNDARIES, 1],
    ];
    for chunk in planted {
        let mut chunks = chunks.clone();
        chunks.push(chunk.to_vec());
        assert!(matches!(decode(&chunks), Err(Error::Damaged)), "{chunk:?}");
    }
    for head in [
        &[HEAD, FORMAT][..],
        &[HEAD, FORMAT + 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let mut chunks = chunks.clone();
        chunks[0] = head.to_vec();
        assert!(matches!(decode(&chunks), Err(Error::Damaged)), "{head:?}");
    }
    for (number, chunk) in chunks.iter().enumerate() {
        for length in 0..chunk.len() {
            let mut chunks = chunks.clone();
            chunks[number].truncate(length);
            let _ = decode(&chunks);
        }
    }
}
