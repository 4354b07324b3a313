// The inner frame that an issuer's page is opened in, by posting a form as the protocol wants it.
"use strict";

/** Anything but these could run as a script of this page instead of being opened. */
function isWebAddress(address) {
  try {
    return ["https:", "http:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}

/** Posts one field to `address` in a new frame, and returns the frame. */
function openFrame({ address, field, value, isVisible }) {
  const frame = document.createElement("iframe");
  // Nobody else can guess the name and have the form end up in a window of theirs.
  frame.name = `issuer-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  frame.title = "Issuer";
  frame.hidden = !isVisible;
  document.body.append(frame);

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
