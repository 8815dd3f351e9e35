import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION_LINE } from '#src/lib/version.ts'
import { SERVER_FILE } from '#src/storage/sqlite/lock.ts'

/**
 * File in the data directory of a development server. The file marks the directory as one of development
 * mode, and tells other commands how to reach the server.
 */
export const DEV_FILE = 'dev.json'

/** Password and secrets of the default seed, and the secret of the admin client. */
export interface DevCredentials {
  readonly password: string
  readonly service_secret: string
  readonly admin_client_secret: string
}

/** Content of `dev.json`. Other processes read it to find a development server. */
export interface DevFile {
  /** The issuer. */
  url: string
  /** Address of the server on this machine. */
  local_url: string
  port: number
  /** null before the server is ready, and after it has stopped. */
  pid: number | null
  /** Bearer token of the controls. */
  control_token: string
  /** Client of a minted token when the call names no client. */
  client_id: string
  /** null for a public client, and for a client whose seed contains only a hash of the secret. */
  client_secret: string | null
  /** Slug of the client's organization. */
  organization: string
  organization_id: string
  data_dir: string
  /** Path of the certificate that clients have to trust. null without --tls. */
  ca_file: string | null
  /**
   * Credentials of the default users, `dev-service` and the admin client. Absent in files of older versions.
   */
  credentials?: DevCredentials
}

/** Reads `dev.json` in a data directory. Returns undefined when the file does not exist. */
export const readDevFile = (data_dir: string): DevFile | undefined => {
  const path = join(data_dir, DEV_FILE)
  return existsSync(path) ? { ...JSON.parse(readFileSync(path, 'utf8')), data_dir } : undefined
}

/**
 * Writes `dev.json` and `server.json`. Each server, also one in production, writes `server.json` for the
 * commands that use its data directory.
 */
export const writeDevFile = (file: DevFile): void => {
  const { data_dir, url, local_url } = file
  const write = (name: string, content: object) =>
    writeFileSync(join(data_dir, name), `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  write(DEV_FILE, file)
  write(SERVER_FILE, { url, local_url, version: VERSION_LINE })
}
