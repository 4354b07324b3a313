//! A message with one thing wrong is told exactly that.

use cloakroom_emv3ds::{ErrorCode, Fault, Message, MessageKind, Version, read};
use serde_json::{Value, json};

use crate::samples::{
    Case, Fields, SERVER_ID, all, areq, areq_options, cases, extension, object, small, text,
};

fn read_any(fields: &Fields) -> Result<Message, Fault> {
    read(&text(fields), &MessageKind::ALL, &Version::ALL)
}

fn told(result: Result<Message, Fault>) -> (&'static str, String) {
    match result {
        Ok(_) => ("", String::new()),
        Err(fault) => (fault.code.code(), fault.detail),
    }
}

const BROWSER_PAYMENT: Case = Case {
    version: Version::V2_2_0,
    channel: "02",
    category: "01",
    indicator: "01",
};

#[test]
fn what_must_be_there_is_enough() {
    for (kind, version, fields) in all() {
        let message = read_any(&fields).unwrap_or_else(|fault| panic!("{kind} {version}: {fault}"));
        assert_eq!(message.kind(), kind);
        assert_eq!(message.version(), version.into());
    }
}

/// What answers need by their request is in `answers`.
#[test]
fn a_missing_field_is_told_by_name() {
    for (kind, version, fields) in all() {
        if matches!(kind, MessageKind::ARes | MessageKind::RReq) {
            continue;
        }
        for name in fields.keys() {
            let mut fewer = fields.clone();
            fewer.shift_remove(name);
            let found = told(read_any(&fewer));
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
fn a_missing_field_of_an_object_is_told_by_path() {
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
            told(read_any(&object(fewer))),
            ("201", format!("{parent}.{name}"))
        );
    }
    for name in ["acctInfo", "merchantRiskIndicator"] {
        for inner in fields[name].as_object().unwrap().keys() {
            let mut fewer = fields.clone();
            fewer[name].as_object_mut().unwrap().shift_remove(inner);
            assert_eq!(told(read_any(&fewer)).0, "", "{name}.{inner} is optional");
        }
    }
    let mut ranges = small(MessageKind::PRes, Version::V2_3_1);
    ranges["cardRangeData"][0]["ranges"][0]
        .as_object_mut()
        .unwrap()
        .shift_remove("endRange");
    let found = told(read_any(&ranges));
    assert_eq!(found, ("201", "cardRangeData.ranges.endRange".to_owned()));
}

#[test]
fn what_may_be_there_may_be_missing() {
    for case in cases().into_iter().filter(|case| case.indicator == "03") {
        let mut fields = areq(case);
        fields.extend(areq_options());
        assert_eq!(told(read_any(&fields)).0, "", "{case:?}");
        for name in areq_options().keys() {
            let mut fewer = fields.clone();
            fewer.shift_remove(name);
            let expected = match name.as_str() {
                "payTokenSource" | "billAddrCountry" | "shipAddrCountry" => ("201", name.clone()),
                _ => ("", String::new()),
            };
            assert_eq!(told(read_any(&fewer)), expected, "{case:?}");
        }
    }
}

#[test]
fn without_javascript_a_browser_tells_less_from_2_2_0_on() {
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
        assert_eq!(told(read_any(&fields)).0, "");
        fields["browserJavascriptEnabled"] = true.into();
        assert_eq!(told(read_any(&fields)), ("201", names.join(",")));
    }
}

#[test]
fn who_asks_for_decoupled_authentication_says_for_how_long() {
    for (version, asked) in [
        (Version::V2_2_0, "Y"),
        (Version::V2_3_1, "Y"),
        (Version::V2_3_1, "F"),
        (Version::V2_3_1, "B"),
    ] {
        let mut fields = areq(Case {
            version,
            ..BROWSER_PAYMENT
        });
        fields.insert("threeDSRequestorDecReqInd".into(), asked.into());
        let missing = ("201", "threeDSRequestorDecMaxTime".to_owned());
        assert_eq!(told(read_any(&fields)), missing);
        fields.insert("threeDSRequestorDecMaxTime".into(), "10080".into());
        assert_eq!(told(read_any(&fields)).0, "");
        fields.shift_remove("threeDSRequestorDecMaxTime");
        fields["threeDSRequestorDecReqInd"] = "N".into();
        assert_eq!(told(read_any(&fields)).0, "");
    }
}

/// Every value in the message, with its path as the tables spell it.
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
fn empty_values_nulls_and_other_types_are_told_by_path() {
    // The requests with all they may have; the other indicators add nothing of their own.
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
                let (code, detail) = told(read_any(&object(broken)));
                // Breaking what others depend on can only make fewer fields necessary.
                let told = (code, detail.split(',').any(|named| named == path));
                assert_eq!(told, ("203", true), "{kind} {version} {path}: {detail}");
            }
        }
    }
}

#[test]
fn a_field_that_is_there_twice_is_told_at_any_depth() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields.extend(areq_options());
    let twice = |inner: &str, again: &str| {
        let whole = Value::Object(fields.clone()).to_string();
        assert!(whole.contains(inner));
        let text = whole.replacen(inner, &format!("{again},{inner}"), 1);
        told(read(text.as_bytes(), &[MessageKind::AReq], &Version::ALL))
    };
    for (inner, again, path) in [
        (r#""mcc":"#, r#""mcc":"5411""#, "mcc"),
        (r#""mcc":"#, r#""\u006dcc":"5411""#, "mcc"),
        (
            r#""messageType":"#,
            r#""messageType":"AReq""#,
            "messageType",
        ),
        (
            r#""chAccDate":"#,
            r#""chAccDate":"20240229""#,
            "acctInfo.chAccDate",
        ),
        (
            r#""criticalityIndicator":"#,
            r#""criticalityIndicator":true"#,
            "messageExtension.criticalityIndicator",
        ),
        (r#""er":"#, r#""er":1"#, "messageExtension.data"),
        (
            r#""mcc":"#,
            r#""unheardOf":1,"unheardOf":1"#,
            "(unknown field)",
        ),
    ] {
        assert_eq!(twice(inner, again), ("204", path.to_owned()));
    }
}

#[test]
fn only_expected_messages_are_read() {
    let read_as = |text: &[u8], kinds: &[MessageKind]| told(read(text, kinds, &Version::ALL)).0;
    let fields = areq(BROWSER_PAYMENT);
    assert_eq!(
        read_as(&text(&fields), &[MessageKind::ARes, MessageKind::PReq]),
        "101"
    );
    assert_eq!(
        read_as(&text(&fields), &[MessageKind::PReq, MessageKind::AReq]),
        ""
    );
    let erro = small(MessageKind::Erro, Version::V2_2_0);
    assert_eq!(read_as(&text(&erro), &[MessageKind::ARes]), "");
    assert_eq!(read_as(&text(&erro), &[]), "");
    for wrong in [
        json!("areq"),
        json!("XReq"),
        json!(""),
        json!(null),
        json!(1),
    ] {
        let mut fields = fields.clone();
        fields["messageType"] = wrong;
        assert_eq!(read_as(&text(&fields), &MessageKind::ALL), "101");
    }
    for text in [
        &b""[..],
        b"null",
        b"[]",
        b"\"AReq\"",
        b"{\"messageType\":\"AReq\"",
        b"{}",
    ] {
        assert_eq!(read_as(text, &MessageKind::ALL), "101");
    }
    let fault = read(&text(&fields), &[], &Version::ALL).unwrap_err();
    assert_eq!(fault.about, Some(MessageKind::AReq));
    assert_eq!(
        fault.ids.threeds_server_trans_id.as_deref(),
        Some(SERVER_ID)
    );
}

#[test]
fn only_expected_versions_are_read() {
    let read_with = |fields: &Fields, versions: &[Version]| {
        told(read(&text(fields), &MessageKind::ALL, versions))
    };
    let mut fields = areq(BROWSER_PAYMENT);
    assert_eq!(
        read_with(&fields, &[Version::V2_1_0, Version::V2_3_1]).0,
        "102"
    );
    assert_eq!(read_with(&fields, &[Version::V2_2_0]).0, "");
    assert_eq!(read_with(&fields, &[]).0, "102");
    for unknown in ["2.0.0", "2.2.1", "3.0.0"] {
        fields["messageVersion"] = unknown.into();
        let expected = ("102", "messageVersion".to_owned());
        assert_eq!(read_with(&fields, &Version::ALL), expected);
    }
    for malformed in [
        json!("2.2"),
        json!("v2.2.0"),
        json!(""),
        json!(null),
        json!(2),
    ] {
        fields["messageVersion"] = malformed;
        let expected = ("203", "messageVersion".to_owned());
        assert_eq!(read_with(&fields, &[Version::V2_2_0]), expected);
    }
    fields.shift_remove("messageVersion");
    assert_eq!(
        read_with(&fields, &[Version::V2_2_0]),
        ("201", "messageVersion".to_owned())
    );
    let mut erro = small(MessageKind::Erro, Version::V2_2_0);
    for any in ["2.0.0", "2.1.0", "3.0.0"] {
        erro["messageVersion"] = any.into();
        assert_eq!(read_with(&erro, &[Version::V2_2_0]).0, "");
    }
}

#[test]
fn a_critical_extension_is_not_known() {
    let mut critical = extension();
    critical["criticalityIndicator"] = true.into();
    for (kind, version, mut fields) in all() {
        if kind == MessageKind::Erro {
            continue;
        }
        fields.insert("messageExtension".into(), json!([extension()]));
        assert_eq!(told(read_any(&fields)).0, "", "{kind} {version}");
        fields.insert("messageExtension".into(), json!([extension(), critical]));
        let expected = ("202", "messageExtension".to_owned());
        assert_eq!(told(read_any(&fields)), expected, "{kind} {version}");
    }
}

/// Each step mends what was told, and the next code comes to light, with all its fields.
#[test]
fn of_several_faults_the_first_code_is_told_with_all_its_fields() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields["mcc"] = "54".into();
    fields["purchaseExponent"] = "".into();
    fields.shift_remove("acctNumber");
    fields.shift_remove("purchaseAmount");
    let mut critical = extension();
    critical["criticalityIndicator"] = true.into();
    fields.insert("messageExtension".into(), json!([critical]));
    let whole = |fields: &Fields| Value::Object(fields.clone()).to_string();
    let of = |text: &str, kinds: &[MessageKind], versions: &[Version]| {
        told(read(text.as_bytes(), kinds, versions))
    };
    let doubled = whole(&fields).replacen(
        "\"mcc\":",
        "\"mcc\":\"1\",\"email\":1,\"email\":2,\"mcc\":",
        1,
    );
    let kinds = [MessageKind::AReq];
    let v220 = [Version::V2_2_0];
    assert_eq!(
        of(&doubled, &[MessageKind::ARes], &[Version::V2_1_0]).0,
        "101"
    );
    assert_eq!(of(&doubled, &kinds, &[Version::V2_1_0]).0, "102");
    assert_eq!(of(&doubled, &kinds, &v220), ("204", "email,mcc".to_owned()));
    let once = whole(&fields);
    assert_eq!(
        of(&once, &kinds, &v220),
        ("201", "acctNumber,purchaseAmount".to_owned())
    );
    fields.insert("acctNumber".into(), "4111111111111111".into());
    fields.insert("purchaseAmount".into(), "1".into());
    assert_eq!(
        of(&whole(&fields), &kinds, &v220),
        ("203", "mcc,purchaseExponent".to_owned())
    );
    fields["mcc"] = "5411".into();
    fields["purchaseExponent"] = "2".into();
    assert_eq!(
        of(&whole(&fields), &kinds, &v220),
        ("202", "messageExtension".to_owned())
    );
}

#[test]
fn long_messages_are_refused() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields.insert("unheardOf".into(), "x".repeat(100 * 1024).into());
    assert_eq!(told(read_any(&fields)).0, "");
    fields["unheardOf"] = "x".repeat(128 * 1024).into();
    let found = read(&text(&fields), &[MessageKind::AReq], &Version::ALL);
    assert_eq!(told(found).0, "101");
    let mut ranges = small(MessageKind::PRes, Version::V2_2_0);
    ranges["cardRangeData"] = vec![ranges["cardRangeData"][0].clone(); 5000].into();
    let found = read(&text(&ranges), &[MessageKind::PRes], &Version::ALL);
    assert_eq!(told(found).0, "");
}

#[test]
fn a_fault_becomes_an_error_message() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields["mcc"] = "x".into();
    let fault = read_any(&fields).unwrap_err();
    let erro = fault.erro(cloakroom_emv3ds::Component::D, Version::V2_2_0);
    let text = cloakroom_emv3ds::write(&erro.clone().into()).unwrap();
    let expected = json!({
        "messageType": "Erro", "messageVersion": "2.2.0", "errorCode": "203",
        "errorComponent": "D", "errorDescription": ErrorCode::FormatInvalid.description(),
        "errorDetail": "mcc", "errorMessageType": "AReq", "threeDSServerTransID": SERVER_ID,
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(erro.code(), Some(ErrorCode::FormatInvalid));
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
        let long = Fault::new(*code, "x,".repeat(5000));
        for fault in [long, Fault::new(*code, "")] {
            let erro = fault.erro(cloakroom_emv3ds::Component::S, Version::V2_1_0);
            assert!(cloakroom_emv3ds::write(&erro.into()).is_ok());
        }
    }
    assert_eq!(ErrorCode::ALL.len(), 21);
}
