/** Ids and times that the examples of the OpenAPI document share, so that they describe one instance. */
export const example = {
  organization_id: 'org_default',
  user_id: 'usr_019c1310-e400-7a3e-9f51-4d2b8c6e7a10',
  role_id: 'role_019c1310-e401-7c54-8a0e-61b7d3f29c44',
  group_id: 'grp_019c1310-e402-7d19-b7c3-08e5a1946f2b',
  client_id: 'shop',
  api_id: 'api_019c1310-e404-7b21-9d0c-5a8e42f61c37',
  invitation_id: 'inv_019c1310-e405-7a08-8c61-2f7d9b30e5a4',
  webhook_id: 'hook_019c1310-e405-7d3c-a1b2-64c0f7e2985d',
  event_id: 'evt_019c1310-e406-7a10-8c3d-2b9f5e7a4410',
  session_id: 'sess_019c1310-e403-7e60-a25d-93f41c7b0e88',
  time: '2026-01-31T08:00:00.000Z',
  later: '2026-03-02T08:00:00.000Z',
  ip_address: '192.0.2.10',
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/147.0',
} as const
