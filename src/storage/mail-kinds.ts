/** Kinds of mail. Their texts are in templates/locales under `mail.<kind>`. */
export type MailKind =
  | 'reset_password'
  | 'verify_email'
  | 'invitation'
  | 'password_changed'
  | 'email_change'
  | 'email_changed'
  | 'factor_added'
  | 'factor_removed'
  | 'recovery_code_used'
  | 'passkey_copied'
  | 'new_device'
  | 'webhook_disabled'
