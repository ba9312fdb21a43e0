package config

import (
	"os"
	"path/filepath"
)

// Readable are the files with secrets that everybody can read, by the keys of their settings.
func (c *Config) Readable() map[string]string {
	files := map[string]string{"admin.token_file": c.Admin.TokenFile, "admin.tls.key_file": c.Admin.TLS.KeyFile, "public.tls.key_file": c.Public.TLS.KeyFile}
	for name, s := range c.Stores {
		files["stores."+name+".password_file"] = s.PasswordFile
	}
	for name, d := range c.Destinations {
		for key, file := range map[string]string{"password_file": d.Login.PasswordFile, "token_file": d.Login.TokenFile, "client_secret_file": d.Login.ClientSecretFile, "key_file": d.Login.KeyFile} {
			files["destinations."+name+".login."+key] = file
		}
	}
	out := map[string]string{}
	for key, file := range files {
		if file == "" {
			continue
		}
		file = absolute(filepath.Dir(c.file), file)
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
			out[key] = file
		}
	}
	return out
}
