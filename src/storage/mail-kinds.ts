/** Kinds of mail. Their texts are in templates/locales under `mail.<kind>`. */
export type MailKind =
  | 'reset_password'
  | 'verify_email'
  | 'sign_in_code'
  | 'invitation'
  | 'registration'
  | 'registration_known'
  | 'registration_approved'
  | 'password_changed'
  | 'email_change'
  | 'email_changed'
  | 'factor_added'
  | 'factor_removed'
  | 'account_linked'
  | 'recovery_code_used'
  | 'recovery_codes_replaced'
  | 'passkey_copied'
  | 'new_device'
  | 'webhook_disabled'

/** Mails that a person waits for. They are sent before the mails of all other kinds. */
export const AWAITED: readonly MailKind[] = ['reset_password', 'sign_in_code', 'verify_email', 'registration']
