//! Tests of the field table and of converted values.

use serde_json::json;

use super::*;

#[test]
fn every_field_maps_to_an_areq_field() {
    for field in FIELDS.iter().filter(|field| !field.to.is_empty()) {
        assert!(field.format().is_some(), "{} -> {}", field.path, field.to);
    }
}

#[test]
fn objects_are_listed_before_their_fields() {
    for (place, field) in FIELDS.iter().enumerate() {
        if let (Some(parent), _) = field.split_path() {
            let before = FIELDS[..place].iter();
            let is_object = |one: &Field| matches!(one.takes, FieldType::Object);
            assert!(
                before
                    .clone()
                    .any(|one| one.path == parent && is_object(one))
            );
        }
    }
}

#[test]
fn values_are_converted_to_protocol_formats() {
    assert_eq!(currency(&json!("EUR")).as_deref(), Some("978"));
    assert_eq!(currency(&json!("826")).as_deref(), Some("826"));
    assert_eq!(currency(&json!("ALL")).as_deref(), Some("008"));
    for unknown in ["XQQ", "000", "123", "98", "+78"] {
        assert_eq!(currency(&json!(unknown)), None, "{unknown}");
    }
    assert_eq!(currency(&json!(978)), None);
    assert_eq!(subdivision("US-CA"), "CA");
    assert_eq!(subdivision("CA"), "CA");
    assert_eq!(latin("José Muñoz"), "Jose Munoz");
    assert_eq!(latin("Łukasz Jørgensen"), "Lukasz Jorgensen");
    assert_eq!(latin("王小明"), "");
    assert_eq!(minutes(&json!(0)), None);
    assert_eq!(minutes(&json!(10_080)), Some(10_080));
    assert_eq!(minutes(&json!("5")), None);
}
