/** Rules in one document. */
export const MAX_RULES = 10_000;

/** Bytes of one document, as JSON in UTF-8. */
export const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;

/**
 * UTF-16 code units of a value that a regular expression is tried on, or that becomes a name. Browsers cut
 * cookies at 4096 bytes. A longer value matches nothing: cutting it would make another value of it.
 */
export const MAX_VALUE_LENGTH = 4096;

/** UTF-16 code units of a regular expression, a pattern or a template. */
export const MAX_TEXT_LENGTH = 1_000;

/**
 * Bytes of a rule's id in UTF-8. A cookie can carry an id, percent-encoded in three times as many bytes, and
 * browsers drop cookies of more than 4096 bytes.
 */
export const MAX_ID_BYTES = 200;

/** Segments of a path pattern, and labels of a host pattern. */
export const MAX_PATTERN_SEGMENTS = 32;

/** Segments of the longest candidate that a rule can make of a path. */
export const MAX_PREFIX_DEPTH = 32;

/** Conditions, transforms or claims of one rule. */
export const MAX_STEPS = 16;

/** Entries of a list such as `formats` or `notUnder`. */
export const MAX_LIST_ENTRIES = 1_000;

/** Names that one rule can make of one request. Each one may cost a lookup. */
export const MAX_CANDIDATES = 64;

/** Findings in one error. More would hide the first ones. */
export const MAX_FINDINGS = 100;
