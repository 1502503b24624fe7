/** A change that code of the last release cannot work with. */
export interface Difference {
  /** What has changed, such as `ledger.begin`. `formats/accepted.json` names differences by it. */
  what: string;
  /** How, as a sentence. */
  fault: string;
}
