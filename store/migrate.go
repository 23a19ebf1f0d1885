package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Migrations are numbered files, applied in order, each in one transaction and
// recorded with its hash: a file that was edited after it was applied is
// refused, and so is a database from a newer version.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

type migration struct {
	number int
	name   string
	text   string
	sha256 string
}

func readMigrations(dialect string) ([]migration, error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var found []migration
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "."+dialect+".sql") {
			continue
		}
		text, err := migrationFiles.ReadFile(path.Join("migrations", e.Name()))
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(e.Name()[:4])
		if err != nil || number != len(found)+1 {
			return nil, fmt.Errorf("migration %s is out of order", e.Name())
		}
		sum := sha256.Sum256(text)
		found = append(found, migration{number, e.Name(), string(text), hex.EncodeToString(sum[:])})
	}
	return found, nil
}

func migrate(ctx context.Context, db *sql.DB, now int64) error {
	const table = `
		create table if not exists migrations (
			number     bigint not null primary key,
			name       text   not null,
			sha256     text   not null,
			applied_at bigint not null
		)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return err
	}
	wanted, err := readMigrations("sqlite")
	if err != nil {
		return err
	}
	applied, err := appliedMigrations(ctx, db)
	if err != nil {
		return err
	}
	if len(applied) > len(wanted) {
		return fmt.Errorf("%w: its schema is at %d, this binary knows %d; use the newer binary", ErrNewer, len(applied), len(wanted))
	}
	for i, m := range wanted {
		if i < len(applied) {
			if applied[i] != m.sha256 {
				return fmt.Errorf("migration %s differs from the one that was applied: this is not the binary that made the database", m.name)
			}
			continue
		}
		if err := apply(ctx, db, m, now); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

func appliedMigrations(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, `select sha256 from migrations order by number`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (h string, err error) { return h, r.Scan(&h) })
}

func apply(ctx context.Context, db *sql.DB, m migration, now int64) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback()
	if _, err := t.ExecContext(ctx, m.text); err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, `insert into migrations (number, name, sha256, applied_at) values ($1, $2, $3, $4)`, m.number, m.name, m.sha256, now); err != nil {
		return err
	}
	return t.Commit()
}
