// A checkout with the official React package.

import {
  BasisTheoryProvider,
  CardElement,
  CardExpirationDateElement,
  CardNumberElement,
  CardVerificationCodeElement,
  TextElement,
  useBasisTheory,
} from "@basis-theory/react-elements";
import React, { StrictMode, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

const { publicKey, ELEMENTS } = window.settings;

function Checkout() {
  const { bt, error } = useBasisTheory(publicKey, { customDomain: ELEMENTS, disableTelemetry: true });
  const [brand, setBrand] = useState();
  const [isOpen, setOpen] = useState(true);
  const [disabled, setDisabled] = useState(false);
  const number = useRef(null);
  const date = useRef(null);
  const code = useRef(null);
  const name = useRef(null);
  window.react = { bt, error, number, date, code, name, setOpen, setDisabled, brand };
  return (
    <BasisTheoryProvider bt={bt}>
      {isOpen && (
        <>
          <CardNumberElement
            id="number"
            ref={number}
            disabled={disabled}
            style={{ base: { color: "#111" } }}
            onChange={(event) => setBrand(event.cardBrand)}
            onReady={() => (window.reactReady = (window.reactReady ?? 0) + 1)}
          />
          <CardExpirationDateElement id="date" ref={date} />
          <CardVerificationCodeElement id="code" ref={code} cardBrand={brand} />
          <TextElement id="name" ref={name} aria-label="Name" mask={[/[a-z]/i, "-", /\d/]} />
          <TextElement id="mirror" valueRef={name} readOnly aria-label="Mirror" />
          <CardElement id="card" />
        </>
      )}
    </BasisTheoryProvider>
  );
}

createRoot(document.getElementById("root")).render(<StrictMode><Checkout /></StrictMode>);
