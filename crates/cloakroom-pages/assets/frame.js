// Opens an issuer's page in an inner frame by posting a form, as EMV 3DS requires.
"use strict";

/** Other schemes, such as `javascript:`, could run as a script of this page. */
function isWebAddress(address) {
  try {
    return ["https:", "http:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}

/** Posts one form field to `address` in a new frame of `parent`, and returns the frame. */
function openFrame({ address, field, value, isVisible, title, parent = document.body }) {
  const frame = document.createElement("iframe");
  // The name is random, so that no other window can have it and receive the form.
  frame.name = `issuer-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  frame.title = title;
  frame.hidden = !isVisible;
  parent.append(frame);

  const input = document.createElement("input");
  input.type = "hidden";
  input.name = field;
  input.value = value;
  const form = document.createElement("form");
  form.method = "POST";
  form.action = address;
  form.target = frame.name;
  form.hidden = true;
  form.append(input);
  document.body.append(form);
  form.submit();
  return frame;
}
