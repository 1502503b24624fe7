/** The types of the names of a run. */
export interface NameTypes {
  bucket: string;
  subject: string;
  source: string;
}

/** What a run knows of the implementation that it tests. */
export interface Deployment {
  cell: string;
  /** Undefined: there is no key of another cell. */
  otherCell: string | undefined;
  types: NameTypes;
}
