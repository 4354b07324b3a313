//! Request bodies: devices and authentication requests.

use serde_json::{Value, json};

/// The device data of a browser.
pub(super) fn browser() -> Value {
    json!({
        "browser_javascript_enabled": true,
        "browser_java_enabled": false,
        "browser_language": "en-US",
        "browser_color_depth": "24",
        "browser_screen_height": "900",
        "browser_screen_width": "1440",
        "browser_tz": "-60",
        "browser_user_agent": "Mozilla/5.0 (a test of devices)",
    })
}

/// The device data of an app.
pub(super) fn app() -> Value {
    json!({
        "sdk_transaction_id": "3ac7caa7-aa42-2663-791b-2ac05a542c4a",
        "sdk_application_id": "6d5b0a3b-0c0f-4a0f-9a0a-2b0a5a4d2c4a",
        "sdk_encryption_data": "eyJhbGciOiJSU0EtT0FFUC0yNTYifQ.a.b.c.d",
        "sdk_ephemeral_public_key": "{\"kty\":\"EC\",\"crv\":\"P-256\",\
            \"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\
            \"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}",
        "sdk_max_timeout": "05",
        "sdk_reference_number": "3DS_LOA_SDK_TEST_020200_00001",
        "sdk_render_options": {"sdk_interface": "01", "sdk_ui_type": ["01", "02", "03", "04"]},
    })
}

/// A payment with the cardholder present and no optional fields.
pub(super) fn payment() -> Value {
    json!({
        "authentication_category": "payment",
        "authentication_type": "payment-transaction",
        "purchase_info": {
            "amount": "8000", "currency": "826", "exponent": "2", "date": "20240109141010",
            "transaction_type": "purchase",
        },
        "merchant_info": {
            "mid": "9876543210001", "acquirer_bin": "000000999", "name": "Example 3DS Merchant",
            "country_code": "826", "category_code": "7922",
        },
        "requestor_info": {
            "id": "example-3ds-merchant", "name": "Example 3DS Merchant",
            "url": "https://www.example.com",
        },
        "cardholder_info": {"name": "John Doe", "email": "john@example.com"},
    })
}

/// A payment of an amount, which selects the simulator's behavior.
pub(super) fn payment_of(amount: &str) -> Value {
    let mut request = payment();
    request["purchase_info"]["amount"] = amount.into();
    request
}

/// A request of this category and type, with every field that some type requires.
pub(super) fn request(category: &str, kind: &str) -> Value {
    let mut request = payment();
    request["authentication_category"] = category.into();
    request["authentication_type"] = kind.into();
    request["decoupled_challenge_max_time"] = 10.into();
    request["purchase_info"]["installment_count"] = "12".into();
    request["purchase_info"]["recurring_expiration"] = "20300101".into();
    request["purchase_info"]["recurring_frequency"] = "30".into();
    request
}

/// A payment that allows decoupled authentication.
pub(super) fn decoupled(minutes: u32) -> Value {
    let mut request = payment();
    request["request_decoupled_challenge"] = true.into();
    request["decoupled_challenge_max_time"] = minutes.into();
    request
}
