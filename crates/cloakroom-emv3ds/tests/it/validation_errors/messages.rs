//! Errors of whole messages, and messages with several errors.

use cloakroom_emv3ds::{ErrorCode, Fault, MessageKind, Version, read};
use serde_json::{Value, json};

use super::{BROWSER_PAYMENT, code_and_detail, read_any};
use crate::samples::{Fields, SERVER_ID, all, areq, areq_options, extension, small, text};

#[test]
fn duplicate_fields_are_reported_at_any_depth() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields.extend(areq_options());
    let twice = |inner: &str, again: &str| {
        let whole = Value::Object(fields.clone()).to_string();
        assert!(whole.contains(inner));
        let text = whole.replacen(inner, &format!("{again},{inner}"), 1);
        code_and_detail(read(text.as_bytes(), &[MessageKind::AReq], &Version::ALL))
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
fn unexpected_message_types_are_rejected() {
    let read_as =
        |text: &[u8], kinds: &[MessageKind]| code_and_detail(read(text, kinds, &Version::ALL)).0;
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
fn unexpected_versions_are_rejected() {
    let read_with = |fields: &Fields, versions: &[Version]| {
        code_and_detail(read(&text(fields), &MessageKind::ALL, versions))
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
fn critical_extensions_are_rejected() {
    let mut critical = extension();
    critical["criticalityIndicator"] = true.into();
    for (kind, version, mut fields) in all() {
        if kind == MessageKind::Erro {
            continue;
        }
        fields.insert("messageExtension".into(), json!([extension()]));
        assert_eq!(code_and_detail(read_any(&fields)).0, "", "{kind} {version}");
        fields.insert("messageExtension".into(), json!([extension(), critical]));
        let expected = ("202", "messageExtension".to_owned());
        assert_eq!(
            code_and_detail(read_any(&fields)),
            expected,
            "{kind} {version}"
        );
    }
}

/// Each step fixes the reported error; the next error code is reported with all its fields.
#[test]
fn the_first_error_code_is_reported_with_all_its_fields() {
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
        code_and_detail(read(text.as_bytes(), kinds, versions))
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
fn oversized_messages_are_rejected() {
    let mut fields = areq(BROWSER_PAYMENT);
    fields.insert("unheardOf".into(), "x".repeat(100 * 1024).into());
    assert_eq!(code_and_detail(read_any(&fields)).0, "");
    fields["unheardOf"] = "x".repeat(128 * 1024).into();
    let found = read(&text(&fields), &[MessageKind::AReq], &Version::ALL);
    assert_eq!(code_and_detail(found).0, "101");
    let mut ranges = small(MessageKind::PRes, Version::V2_2_0);
    ranges["cardRangeData"] = vec![ranges["cardRangeData"][0].clone(); 5000].into();
    let found = read(&text(&ranges), &[MessageKind::PRes], &Version::ALL);
    assert_eq!(code_and_detail(found).0, "");
}

#[test]
fn a_fault_converts_to_an_erro() {
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
