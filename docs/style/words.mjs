// The vocabulary of the documentation: what not to write, and what to write instead.
//
// Patterns apply to prose: not to blocks of code, `code`, links' targets and quoted error texts.

export const rules = [
  // One term for one concept, the one that the field uses.
  [/\b(whoever|nobody|somebody|anybody)\b/i, "name the role: client, caller, operator, cardholder"],
  [/\b(convoys?|turnstiles?|passengers?|stranded)\b/i, "batch, admission, item, queue timeout"],
  [/\b(tells?|told)\b/i, "state, report, return, distinguish"],
  [/\b(is|are|was|were|be|been|and|has|have|what) kept\b/i, "is stored, is retained, remains"],
  [/\brefus(e|es|ed|ing|als?)\b/i, "reject"],
  [/\b(is|are|was|were|it's) (gone|away)\b/i, "is unavailable, has exited, is removed"],
  [/(?<!-)\b(forgets?|forgotten)\b/i, "delete, expire"],
  [/\b(mends?|mended|to mend)\b/i, "repair, correct"],
  [/\bsabotages?d?\b/i, "mutation, injected bug"],
  [/\bseen red\b/i, "verified to fail"],
  [/\bholes?\b/i, "vulnerability, gap"],
  [/\banswer(s|ed)? (with )?(\d{3}|the same)\b/i, "return, respond with"],
  [/\bdoes not open\b/i, "cannot be decrypted"],
  [/\bby (what|which) (it|they) (was|were) seen\b/i, "name the technique"],
  [/\btakes? (their )?turns\b/i, "alternate, are serialized"],
  [/\bwhere (it|they) (lies?|goes?|stands?)\b/i, "in its container, its place"],
  [/\b(with chance|to the byte|type's own|without a word|as ever|makes? way for)\b/i, "non-deterministic, identical, of the type"],
  // American English, as the interface has it.
  [/\b\w*(behaviour|colour|honour|favour|neighbour)\w*\b/i, "American spelling"],
  [/\b\w+(is(e|es|ed|ing|ation))\b(?<=(authoris|tokenis|normalis|serialis|initialis|optimis|organis|recognis|summaris|minimis|anonymis|synchronis|customis)\w*)/i, "American spelling: -ize"],
  [/\b(licence|centre|catalogue|grey|cancelled|cancelling|whilst|amongst)\b/i, "American spelling"],
  // Marketing and filler.
  [/\b(simply|obviously|of course|just works|seamless(ly)?|blazing(ly)?|world-class|cutting-edge)\b/i, "leave it out"],
  [/\be\.g\.|\bi\.e\./i, "such as, that is"],
];
