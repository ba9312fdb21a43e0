package bridge

import (
	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/tables"
	"github.com/rsbridge/rsbridge/internal/configfile"
)

// The configuration, and its tables for programs with one of their own.
type (
	Config      = config.Config
	Public      = config.Public
	Admin       = config.Admin
	Store       = config.Store
	Set         = config.Set
	Content     = config.Content
	Destination = config.Destination

	Select       = tables.Select
	Part         = tables.Part
	Hints        = tables.Hints
	ResourceList = tables.ResourceList
	ChangeList   = tables.ChangeList
	ResourceDump = tables.ResourceDump
	ChangeDump   = tables.ChangeDump
	Archives     = tables.Archives
	Retention    = tables.Retention
	Audit        = tables.Audit

	Secret      = config.Secret
	Duration    = config.Duration
	Finding     = config.Finding
	ConfigError = config.Error
)

// Errors of declarations: see package config.
var (
	ErrUnknown = config.ErrUnknown
	ErrInFile  = config.ErrInFile
	ErrNoFile  = config.ErrNoFile
)

// NewConfig has the documented defaults, like NewStore, NewSet and NewDestination for its tables.
func NewConfig() *Config { return config.New() }

// NewStore has the defaults of a store.
func NewStore() Store { return configfile.Defaults[Store]() }

// NewSet has the defaults of a set.
func NewSet() Set { return configfile.Defaults[Set]() }

// NewDestination has the defaults of a destination.
func NewDestination() Destination { return configfile.Defaults[Destination]() }

// Load is [config.Load].
func Load(file string) (*Config, error) { return config.Load(file) }

// Parse is [config.Parse].
func Parse(raw []byte, file string) (*Config, error) { return config.Parse(raw, file) }
