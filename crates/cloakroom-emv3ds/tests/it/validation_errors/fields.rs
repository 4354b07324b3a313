//! Missing and malformed fields.

use cloakroom_emv3ds::{MessageKind, Version};
use serde_json::{Value, json};

use super::{BROWSER_PAYMENT, code_and_detail, read_any};
use crate::samples::{Case, all, areq, areq_options, cases, object, small};

#[test]
fn the_required_fields_are_sufficient() {
    for (kind, version, fields) in all() {
        let message = read_any(&fields).unwrap_or_else(|fault| panic!("{kind} {version}: {fault}"));
        assert_eq!(message.kind(), kind);
        assert_eq!(message.version(), version.into());
    }
}

/// `correlation` covers the fields of `ARes` and `RReq`.
#[test]
fn a_missing_field_is_reported_by_name() {
    for (kind, version, fields) in all() {
        if matches!(kind, MessageKind::ARes | MessageKind::RReq) {
            continue;
        }
        for name in fields.keys() {
            let mut fewer = fields.clone();
            fewer.shift_remove(name);
            let found = code_and_detail(read_any(&fewer));
            if name == "messageType" {
                assert_eq!(found.0, "101");
            } else if name == "cardRangeData" {
                assert_eq!(found.0, "", "nothing changed");
            } else {
                assert_eq!(found, ("201", name.clone()), "{kind} {version}");
            }
        }
    }
}

#[test]
fn a_missing_field_of_an_object_is_reported_by_path() {
    let mut fields = areq(Case {
        channel: "01",
        ..BROWSER_PAYMENT
    });
    fields.extend(areq_options());
    let needed = [
        ("/homePhone", "cc"),
        ("/mobilePhone", "subscriber"),
        ("/deviceRenderOptions", "sdkInterface"),
        ("/deviceRenderOptions", "sdkUiType"),
        ("/messageExtension/0", "name"),
        ("/messageExtension/0", "id"),
        ("/messageExtension/0", "criticalityIndicator"),
        ("/messageExtension/0", "data"),
    ];
    for (pointer, name) in needed {
        let mut fewer = Value::Object(fields.clone());
        let inner = fewer
            .pointer_mut(pointer)
            .and_then(Value::as_object_mut)
            .unwrap();
        inner.shift_remove(name).unwrap();
        let parent = pointer.split('/').nth(1).unwrap();
        assert_eq!(
            code_and_detail(read_any(&object(fewer))),
            ("201", format!("{parent}.{name}"))
        );
    }
    for name in ["acctInfo", "merchantRiskIndicator"] {
        for inner in fields[name].as_object().unwrap().keys() {
            let mut fewer = fields.clone();
            fewer[name].as_object_mut().unwrap().shift_remove(inner);
            assert_eq!(
                code_and_detail(read_any(&fewer)).0,
                "",
                "{name}.{inner} is optional"
            );
        }
    }
    let mut ranges = small(MessageKind::PRes, Version::V2_3_1);
    ranges["cardRangeData"][0]["ranges"][0]
        .as_object_mut()
        .unwrap()
        .shift_remove("endRange");
    let found = code_and_detail(read_any(&ranges));
    assert_eq!(found, ("201", "cardRangeData.ranges.endRange".to_owned()));
}

#[test]
fn optional_fields_may_be_missing() {
    for case in cases().into_iter().filter(|case| case.indicator == "03") {
        let mut fields = areq(case);
        fields.extend(areq_options());
        assert_eq!(code_and_detail(read_any(&fields)).0, "", "{case:?}");
        for name in areq_options().keys() {
            let mut fewer = fields.clone();
            fewer.shift_remove(name);
            let expected = match name.as_str() {
                "payTokenSource" | "billAddrCountry" | "shipAddrCountry" => ("201", name.clone()),
                _ => ("", String::new()),
            };
            assert_eq!(code_and_detail(read_any(&fewer)), expected, "{case:?}");
        }
    }
}

#[test]
fn browser_data_is_optional_without_javascript_from_2_2_0() {
    let names = [
        "browserJavaEnabled",
        "browserColorDepth",
        "browserScreenHeight",
        "browserScreenWidth",
        "browserTZ",
    ];
    for version in [Version::V2_2_0, Version::V2_3_1] {
        let mut fields = areq(Case {
            version,
            ..BROWSER_PAYMENT
        });
        fields["browserJavascriptEnabled"] = false.into();
        for name in names {
            fields.shift_remove(name);
        }
        assert_eq!(code_and_detail(read_any(&fields)).0, "");
        fields["browserJavascriptEnabled"] = true.into();
        assert_eq!(code_and_detail(read_any(&fields)), ("201", names.join(",")));
    }
}

#[test]
fn requesting_decoupled_authentication_requires_a_maximum_time() {
    for (version, indicator) in [
        (Version::V2_2_0, "Y"),
        (Version::V2_3_1, "Y"),
        (Version::V2_3_1, "F"),
        (Version::V2_3_1, "B"),
    ] {
        let mut fields = areq(Case {
            version,
            ..BROWSER_PAYMENT
        });
        fields.insert("threeDSRequestorDecReqInd".into(), indicator.into());
        let missing = ("201", "threeDSRequestorDecMaxTime".to_owned());
        assert_eq!(code_and_detail(read_any(&fields)), missing);
        fields.insert("threeDSRequestorDecMaxTime".into(), "10080".into());
        assert_eq!(code_and_detail(read_any(&fields)).0, "");
        fields.shift_remove("threeDSRequestorDecMaxTime");
        fields["threeDSRequestorDecReqInd"] = "N".into();
        assert_eq!(code_and_detail(read_any(&fields)).0, "");
    }
}

/// Every value of a message as JSON pointer, with its path in the field table.
fn leaves(value: &Value, pointer: &str, path: &str, found: &mut Vec<(String, String)>) {
    let mut inside = |name: &str, inner: &Value, path: String| {
        leaves(inner, &format!("{pointer}/{name}"), &path, found);
    };
    match value {
        Value::Object(object) => {
            for (name, inner) in object {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                inside(name, inner, path);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                inside(&index.to_string(), element, path.to_owned());
            }
        }
        _ => {}
    }
    if !pointer.is_empty() && pointer != "/messageType" {
        found.push((pointer.to_owned(), path.to_owned()));
    }
}

fn is_opaque(path: &str) -> bool {
    ["broadInfo.", "messageExtension.data.", "sdkEphemPubKey."]
        .iter()
        .any(|opaque| path.starts_with(opaque))
}

#[test]
fn empty_values_nulls_and_wrong_types_are_reported_by_path() {
    // Requests with all optional fields. Other indicators add no fields.
    let mut samples = all();
    samples.retain(|(kind, _, _)| *kind != MessageKind::AReq);
    for case in cases()
        .into_iter()
        .filter(|case| case.indicator == "03" && (case.category == "01" || case.channel == "03"))
    {
        let mut fields = areq(case);
        fields.extend(areq_options());
        samples.push((MessageKind::AReq, case.version, fields));
    }
    for (kind, version, fields) in samples {
        let message = Value::Object(fields);
        let mut found = Vec::new();
        leaves(&message, "", "", &mut found);
        for (pointer, path) in found.into_iter().filter(|(_, path)| !is_opaque(path)) {
            for wrong in [json!(""), json!(null), json!(7), json!({})] {
                let mut broken = message.clone();
                *broken.pointer_mut(&pointer).unwrap() = wrong;
                let (code, detail) = code_and_detail(read_any(&object(broken)));
                // A malformed value that other fields depend on only reduces the required fields.
                let found = (code, detail.split(',').any(|named| named == path));
                assert_eq!(found, ("203", true), "{kind} {version} {path}: {detail}");
            }
        }
    }
}
