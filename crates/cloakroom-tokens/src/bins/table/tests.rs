//! Tests of lookups during an import.

use std::sync::atomic::AtomicBool;

use cloakroom_core::access::TenantKind;

use super::*;
use crate::bins::CardDetails;
use crate::bins::read::tests::table_of_csv;

#[test]
fn lookups_never_mix_two_tables() {
    let table = |name: &str, country: &str| {
        let header = "low,segment,issuer_name,product_code,issuer_country";
        table_of_csv(&format!(
            "{header}\n400000,{name},{name},{name},{country}\n"
        ))
    };
    let bins = Bins::holding(table("BM", "BM"));
    let is_over = AtomicBool::new(false);

    let seen = std::thread::scope(|scope| {
        let read = || {
            let mut seen = std::collections::HashSet::new();
            while !is_over.load(Ordering::Relaxed) {
                let details =
                    CardDetails::of(&bins, TenantKind::Production, "4000001111111111").unwrap();
                let issuer = details.issuer.unwrap();
                let texts = [
                    details.segment,
                    issuer.name,
                    issuer.country,
                    details.product.map(|product| product.code),
                    details
                        .issuer_country
                        .map(|country| country.alpha2.to_owned()),
                ];
                assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
                seen.insert(texts[0].clone());
            }
            seen.len()
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for version in 2..400 {
            let name = if version % 2 == 0 { "FR" } else { "BM" };
            bins.swap(version, table(name, name));
        }
        is_over.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap())
    });

    assert!(seen.contains(&2), "no reader saw a swap: {seen:?}");
}
