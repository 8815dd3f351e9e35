import { parseDocument } from './client-document.ts'
import type { Registration } from './dynamic-client.ts'

const LOCAL = ['http://localhost/callback', 'http://127.0.0.1/callback']

/**
 * Copies of metadata documents as published in September 2026, for servers that cannot fetch them: some
 * publishers refuse calls from data centres, and some servers have no Internet access. Each copy has the name
 * and the redirect URIs of the client. The copy of a client with keys also has the authentication methods and
 * the URL of the keys.
 */
const published: Record<string, object> = {
  'https://claude.ai/oauth/mcp-oauth-client-metadata': {
    client_name: 'Claude',
    redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
  },
  'https://claude.ai/oauth/claude-code-client-metadata': {
    client_name: 'Claude Code',
    redirect_uris: LOCAL,
  },
  'https://chatgpt.com/oauth/client.json': {
    client_name: 'ChatGPT',
    redirect_uris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
    jwks_uri: 'https://chatgpt.com/oauth/jwks.json',
  },
  'https://chatgpt.com/oauth/codex/client.json': { client_name: 'Codex', redirect_uris: LOCAL },
  'https://vscode.dev/oauth/client-metadata.json': {
    client_name: 'Visual Studio Code',
    redirect_uris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect'],
  },
  'https://zed.dev/oauth/client-metadata.json': {
    client_name: 'Zed',
    redirect_uris: ['http://127.0.0.1/callback'],
  },
  'https://opencode.ai/oauth/opencode/client.json': { client_name: 'OpenCode', redirect_uris: LOCAL },
}

/** Ids of the clients whose documents the executable contains. */
export const publishedIds: readonly string[] = Object.keys(published)

/** Returns the copy of the client's document. Returns undefined when the executable contains no copy. */
export const copyOf = (client_id: string): Registration | undefined =>
  Object.hasOwn(published, client_id)
    ? parseDocument(
        { ...published[client_id], client_id, grant_types: ['authorization_code', 'refresh_token'] },
        client_id,
      )
    : undefined
