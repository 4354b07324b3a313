//! Compares the catalog with its source, attribute by attribute.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cloakroom_formulas::{FORMULAS, Feature, find};
use serde_json::Value;

fn source() -> Vec<Value> {
    serde_json::from_str(include_str!("source.json")).unwrap()
}

/// Covers 25.1.
#[test]
fn the_catalog_equals_its_source() {
    let source = source();
    assert_eq!(source.len(), 18);
    assert_eq!(FORMULAS.len(), source.len());
    for expected in &source {
        let id = expected["id"].as_str().unwrap();
        let formula = serde_json::to_value(find(id).unwrap()).unwrap();
        assert_eq!(&formula, expected, "{id}");
        // Also compares the order of attributes, which comparing values ignores.
        assert_eq!(formula.to_string(), expected.to_string(), "{id}");
    }
}

#[test]
fn formulas_are_found_only_by_their_exact_id() {
    assert!(FORMULAS.is_sorted_by(|one, next| one.id < next.id));
    for formula in FORMULAS {
        assert_eq!(find(formula.id), Some(formula));
    }
    for unknown in ["", "stripe", "Stripe-card", "stripe-card ", "mock-card"] {
        assert_eq!(find(unknown), None, "{unknown}");
    }
}

#[test]
fn features_serialize_by_name() {
    for formula in FORMULAS {
        let serialized = serde_json::to_value(formula.supported_features).unwrap();
        assert_eq!(serialized.as_object().unwrap().len(), Feature::ALL.len());
        for feature in Feature::ALL {
            let has = formula.supported_features.has(*feature);
            assert_eq!(
                serialized[feature.name()],
                has,
                "{} {feature:?}",
                formula.id
            );
        }
    }
}
