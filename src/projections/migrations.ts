/**
 * The names of the files in migrations/, in order. test/node-host/migrations.test.ts compares them. They are
 * apart from the SQL, which the Worker does not need.
 */
export const migrationNames = ["0000_projection.sql"] as const;
