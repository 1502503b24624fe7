import { Option, type Command } from "commander";
import { wholeNumber, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { grpc } from "./grpc.ts";

export function addGrpc(program: Command, run: Run): void {
  const command = program
    .command("grpc")
    .description("Serve native gRPC on this machine for a deployment, until Ctrl-C.")
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .addOption(new Option("--port <port>", "the port").argParser(wholeNumber(1, 65_535)).default(8_788))
    .option("--cert <file>", "a certificate in PEM, for TLS; needs --key")
    .option("--key <file>", "the certificate's private key in PEM")
    .option("--client-ca <file>", "only accept clients with a certificate that one of these has signed")
    .action(run(grpc));
  withExamples(
    command,
    ["grpc --url https://leasehold.example.com", "Without TLS, for clients on this machine"],
    [
      "grpc --host 0.0.0.0 --port 443 --cert server.pem --key server.key --client-ca cells.pem",
      "With TLS, for clients with a certificate",
    ],
  );
}
