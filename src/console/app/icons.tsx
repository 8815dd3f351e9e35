const shapes = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  users:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.5a6.5 6.5 0 0 1 3.5 5.5',
  clients: 'M4 5h16v14H4zM4 9.5h16M7 7.2h.01M9.5 7.2h.01',
  events: 'M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4',
  sessions: 'M3 5h18v11H3zM8.5 20h7M12 16v4',
  organizations: 'M4 20V6l8-3 8 3v14M9 20v-5h6v5M8 9h.01M12 9h.01M16 9h.01M8 12h.01M16 12h.01',
  roles: 'M12 3 4.5 6v5.5c0 4.5 3 8 7.5 9.5 4.5-1.5 7.5-5 7.5-9.5V6ZM9 11.5l2.2 2.2L15.5 9.5',
  groups:
    'M12 10.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM6.5 19a5.5 5.5 0 0 1 11 0M4.8 11.5a2.2 2.2 0 1 1 1-4M2 17a4.5 4.5 0 0 1 2.5-3.4M19.2 11.5a2.2 2.2 0 1 0-1-4M22 17a4.5 4.5 0 0 0-2.5-3.4',
  providers: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1',
  webhooks: 'M12 8.5a3 3 0 1 0-2.2-1l-3 5.5M14.2 7.5l3 5.5M17.5 12.8a3 3 0 1 1-2.9 3.7H9.4a3 3 0 1 1-3-3.7',
  settings:
    'M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5a7.5 7.5 0 0 1 15 0',
  guide: 'M12 6.5C10 5 7 4.5 4 5v13.5c3-.5 6 0 8 1.5 2-1.5 5-2 8-1.5V5c-3-.5-6 0-8 1.5ZM12 6.5V20',
  menu: 'M4 7h16M4 12h16M4 17h16',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5 10 17l9-10',
  alert: 'M12 8.5v4.5M12 16.5h.01M12 3.5 2.5 20h19z',
  mail: 'M3.5 6h17v12h-17zM4 6.5l8 6.5 8-6.5',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  plus: 'M12 5v14M5 12h14',
  cross: 'M6.5 6.5l11 11M17.5 6.5l-11 11',
  apis: 'M12 3 20 7.5v9L12 21l-8-4.5v-9ZM4 7.5l8 4.5 8-4.5M12 12v9',
  right: 'm9 5 7 7-7 7',
  web: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18',
  spa: 'M4 5h16v14H4zM4 9h16M9.5 12.5 7.5 14.5l2 2M14.5 12.5l2 2-2 2',
  native: 'M7 3h10v18H7zM11 18h2',
  service: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
}
export type IconName = keyof typeof shapes

/**
 * Shows an icon. Screen readers skip it, because each icon stands beside a text or in a button with a label.
 */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)
