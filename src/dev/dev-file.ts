/**
 * File in the data directory of a development server. It marks the directory, and tells other commands how to
 * reach the server.
 */
export const DEV_FILE = 'dev.json'

/** Content of the file by which other processes find a development server. */
export interface DevFile {
  /** The issuer. */
  url: string
  /** Address of the server for this machine. */
  local_url: string
  port: number
  /** null once the server has stopped. */
  pid: number | null
  /** Bearer token of the controls. */
  control_token: string
  /** Client of minted tokens, unless a call names another. */
  client_id: string
  client_secret: string | null
  /** Slug of the client's organization. */
  organization: string
  organization_id: string
  data_dir: string
  /** Certificate to trust, with --tls. */
  ca_file: string | null
}
