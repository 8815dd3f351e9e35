/** In the data directory of a development server: marks it as one, and tells other commands how to reach the server. */
export const DEV_FILE = 'dev.json'

export interface DevFile {
  /** The issuer. */
  url: string
  /** Where this machine reaches the server. */
  local_url: string
  port: number
  /** null: it runs no more. */
  pid: number | null
  /** Opens the controls. */
  control_token: string
  /** The client for whom tokens are made unless another is named. */
  client_id: string
  client_secret: string | null
  /** Slug of its organization. */
  organization: string
  organization_id: string
  data_dir: string
  /** The certificate to trust, with --tls. */
  ca_file: string | null
}
