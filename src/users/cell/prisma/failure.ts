/** The error of the database inside an error of Prisma, with the fields that Prisma's adapters give it. */
interface DriverCause {
  /** The SQLSTATE. */
  originalCode?: string;
  originalMessage?: string;
  severity?: string;
  detail?: string;
  table?: string;
  constraint?: { index?: string };
}

/**
 * Answers an error of Prisma as node-postgres would have thrown it. Prisma keeps the SQLSTATE, but drops the
 * severity of errors that it has a code of its own for, such as P2002. None of these are fatal once a
 * transaction has begun. An error without a SQLSTATE, such as P2028 or a lost connection, stays as it is.
 */
export function describePrismaError(error: unknown): unknown {
  const { originalCode, originalMessage, severity, detail, table, constraint } = driverCauseOf(error) ?? {};
  if (originalCode === undefined) return error;
  return {
    code: originalCode,
    severity: severity ?? "ERROR",
    message: originalMessage ?? "",
    table,
    constraint: constraint?.index,
    detail,
  };
}

/** A statement's error has the driver's in `meta`. The error of a COMMIT can be the driver's itself. */
function driverCauseOf(error: unknown): DriverCause | undefined {
  const { name, cause, meta } = error as {
    name?: string;
    cause?: DriverCause;
    meta?: { driverAdapterError?: { cause?: DriverCause } };
  };
  return name === "DriverAdapterError" ? cause : meta?.driverAdapterError?.cause;
}
