/** Settings of the server, parsed once from environment and file (decisions.md section 7). */
export interface Config {
  /** The public `{base_url}` and issuer: no path, no trailing slash. */
  url: string
  host: string
  port: number
  data_dir: string
  database_url: string | undefined
  master_key: string | undefined
  trusted_proxies: string[]
  log_level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  tls_cert: string | undefined
  tls_key: string | undefined
  geoip_file: string | undefined
  outbound_allow: string[]
  smtp_url: string | undefined
  mail_from: string | undefined
  /** argon2id memory in KiB and passes. */
  argon2_memory: number
  argon2_time: number
  admin_client_id: string
  admin_client_secret: string | undefined
  admin_username: string | undefined
  admin_email: string | undefined
  admin_password: string | undefined
  access_token_alg: string
  id_token_alg: string
  /** Audit events older than this many milliseconds are removed; undefined keeps them. */
  event_retention: number | undefined
}
